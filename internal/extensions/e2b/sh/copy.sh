# Does one COPY of a Dockerfile: copy.sh OWNER MODE TO SOURCE …, as root in the folder that WORKDIR names. The sources
# are below the build's context, where the caller has put it.

context=/.sandboxer/context stage=/.sandboxer/stage
owner=$1 mode=$2 to=$3
shift 3
case $to in /*) ;; *) to=$PWD/$to ;; esac
[ $# -lt 2 ] || to=${to%/}/
for one; do
	case $one in */ | . | */.) one=${one%.} one=${one%/} ;; esac
	from=$context${one:+/$one}
	[ -e "$from" ] || [ -h "$from" ] || {
		echo "COPY: $one is not in the build's context" >&2
		exit 1
	}
	rm -rf "$stage"
	cp -a "$from" "$stage" || exit
	[ -z "$owner" ] || chown -Rh "$owner" "$stage" || exit
	[ -z "$mode" ] || chmod -R "$mode" "$stage" || exit
	if [ -d "$stage" ] && [ ! -h "$stage" ]; then
		mkdir -p "$to" && cp -a "$stage/." "$to" || exit
		continue
	fi
	case $to in
	*/) mkdir -p "$to" && cp -a "$stage" "$to${one##*/}" || exit ;;
	*)
		[ ! -d "$to" ] || to=$to/${one##*/}
		mkdir -p "${to%/*}/" && cp -a "$stage" "$to" || exit
		;;
	esac
done
rm -rf "$stage"
