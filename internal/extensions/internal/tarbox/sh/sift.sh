# For pack.sh: "holes 0 FILE" prints the size of a large file's holes if they are most of it; "pack LIMIT FILES" archives
# the files with smaller ones.

way=$1 limit=$2
shift 2
for f; do
	shift
	holes=
	if [ -f "$f" ] && [ ! -h "$f" ] && at=$(stat -c "%b %s" -- "$f" 2>/dev/null) && [ "${at##* }" -gt 536870912 ]; then
		[ "$((${at%% *} * 1024))" -ge "${at##* }" ] || holes=$((${at##* } - ${at%% *} * 512))
	fi
	case $way in
	holes) [ -z "$holes" ] || echo "$holes" ;;
	*)
		if [ "${holes:-0}" -lt "$limit" ]; then
			set -- "$@" "$f"
		else
			printf "tar: left out, it is mostly holes: %s\n" "$f" >&2
		fi
		;;
	esac
done
[ "$#" = 0 ] || exec tar -cf - -- "$@"
