# Operation: a tar stream into or out of a service. Variables beside those of
# inside.sh: way (in | out), at (the path), holes (on the way out: kept, where the
# archiver can, or filled), fill (bytes that holes of large files may become).
#
# The archiver is the container's own, run by docker exec: it sees what a command
# sees, writes as the container's user, and whatever links it follows, it cannot
# leave the container. An image without tar and sh is left to docker cp.

use_root
use_box "$id"
need_tools
exec 4<&0 </dev/null
inside_find
inside_path "$at"
while :; do
	case $path in
	?*/) path=${path%/} ;;
	*) break ;;
	esac
done

# owner sets uid and gid of the container's user.
owner() {
	uid=${user%%:*} gid=
	case $user in *:*) gid=${user#*:} ;; esac
	uid=${uid:-0}
	case $uid in
	*[!0-9]*)
		entry=$(names passwd "$uid") uid=${entry%% *}
		gid=${gid:-${entry#* }}
		;;
	esac
	case $gid in
	*[!0-9]*)
		entry=$(names group "$gid") gid=${entry%% *}
		;;
	esac
	uid=${uid:-0} gid=${gid:-0}
}

# names FILE NAME prints the numbers of a name in /etc/passwd or /etc/group.
names() {
	docker cp "$container:/etc/$1" - 2>/dev/null </dev/null | tar -xOf - 2>/dev/null | while IFS=: read -r name _ first second _; do
		[ "$name" = "$2" ] || continue
		case $first$second in
		*[!0-9]*) ;;
		*) echo "$first $second" ;;
		esac
		[ "$1" = passwd ] || echo "$first"
		break
	done | head -n 1
}

# hold stops the container while docker itself looks for a path in it, so that
# nothing inside can put a link in the way meanwhile.
hold() {
	trap release EXIT
	trap 'exit 1' TERM INT
	why=$(docker pause "$container" 2>&1 </dev/null) ||
		fail unsupported "the image of $service has no tar and sh, and its container cannot be paused for docker cp: $why" 'use an image with tar and sh'
}

release() {
	trap - EXIT
	docker unpause "$container" >/dev/null 2>&1 </dev/null
}

# stops FIRST WORDS fails by what the archiver or docker printed.
stopped() {
	case $words in
	*'ead-only'*) fail conflict "$path in $service cannot be written: it is read-only" 'write to another folder, or give the workspace access: rw' "$words" ;;
	*'o space left'* | *'quota exceeded'*) fail exhausted "$path in $service cannot be written" 'free some disk space on the host' "$words" ;;
	*'ermission denied'* | *'not permitted'*) fail unauthorized "$path in $service is not open to the container's user" 'choose a folder that this user may use' "$words" ;;
	*'ot a directory'* | *'ile exists'* | *'s a directory'* | *'annot overwrite'*) fail conflict "something in $path of $service is in the way" 'remove it first, or use another folder' "$words" ;;
	*'o such file'* | *'ould not find'*) fail not_found "there is no $path in $service" '' "$words" ;;
	esac
	fail unavailable "the transfer to or from $path in $service failed with code $code" 'look at the host and the service, then try again' "$words"
}

if docker exec "$container" sh -c 'command -v tar && command -v mkdir' </dev/null >/dev/null 2>&1; then
	method=tar
else
	method=copy
fi
uid=0 gid=0 folder=false
if [ "$method" = copy ] && [ "$way" = in ]; then
	owner
	n=$(docker cp "$container:$path" - 2>/dev/null </dev/null | dd bs=512 count=1 2>/dev/null | wc -c)
	[ "$n" = 0 ] || folder=true
fi
say "{\"method\":\"$method\",\"uid\":$uid,\"gid\":$gid,\"folder\":$folder,\"path\":$(json_string "$path")}"
code=0
case $way.$method in
in.tar)
	# Links are checked before they come here.
	words=$(docker exec -i -e EXTRACT_UNSAFE_SYMLINKS=1 "$container" sh -c 'mkdir -p -- "$1" && cd -- "$1" && exec tar -xpof -' sh "$path" <&4 2>&1 >/dev/null) || code=$?
	[ "$code" = 0 ] || stopped
	;;
in.copy)
	hold
	words=$(docker cp - "$container:/" <&4 2>&1 >/dev/null) || code=$?
	release
	[ "$code" = 0 ] || stopped
	;;
out.tar)
	# sift runs inside: "holes 0 FILE" prints how much of a file is holes, where most
	# of it is and it is large; "pack LIMIT FILES" archives those with less.
	sift='
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
		[ "$#" = 0 ] || exec tar -cf - -- "$@"'
	# 44 and 45 are this script's own: nothing there, not to be entered. GNU tar
	# keeps holes. The others write them out: of the files that are mostly holes, the
	# smallest come, as far as fill goes; the others stay behind, and are told.
	{
		words=$({
			docker exec "$container" sh -c '
				LC_ALL=C
				export LC_ALL
				if [ ! -h "$1" ] && [ -d "$1" ]; then
					cd -- "$1" || exit 45
					set -- . "$2" "$3" "$4"
				else
					[ -e "$1" ] || [ -h "$1" ] || exit 44
					d=${1%/*}
					cd -- "${d:-/}" || exit 45
					set -- "./${1##*/}" "$2" "$3" "$4"
				fi
				case $2$(tar --version 2>/dev/null) in
				kept*GNU*) exec tar -S --format=posix --sparse-version=0.1 -cf - "$1" ;;
				esac
				limit=$(find "$1" -type f -size +524288k -exec sh -c "$4" sh holes 0 {} \; 2>/dev/null | sort -n | {
					sum=0
					while read -r n; do
						sum=$((sum + n))
						[ "$sum" -le "$3" ] || { echo "$n" && break; }
					done
				})
				if [ -n "$limit" ]; then
					find "$1" ! -type d -exec sh -c "$4" sh pack "$limit" {} +
					exit 1
				fi
				exec tar -cf - "$1"' sh "$path" "$holes" "$fill" "$sift" </dev/null || code=$?
			echo "exit ${code:-0}" >&2
		} 2>&1 >&5 | tail -c 6000)
	} 5>&1
	code=${words##*exit }
	words=$(printf '%s' "${words%exit *}" | tr '\n' '|')
	;;
*.copy)
	hold
	{ words=$(docker cp "$container:$path" - </dev/null 2>&1 >&5); } 5>&1 || code=$?
	release
	[ "$code" = 0 ] || stopped
	;;
esac
case $code in
44) fail not_found "there is no $path in $service" 'check the path; a relative one is below the workspace' ;;
45) fail unauthorized "$path in $service is not open to the container's user" 'choose a folder that this user may use' ;;
esac
say "{\"exit\":$code,\"service\":\"$service\",\"words\":$(json_string "${words:-}")}"
