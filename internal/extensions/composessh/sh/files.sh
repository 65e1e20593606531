# Operation: a tar stream into or out of a service. Variables besides those of inside.sh: way (in | out), at (the path),
# unpack and pack (scripts for inside), and what the second has besides the path: holes, fill, sift.
#
# The archiver is the container's own, run by docker exec: it sees what a command sees, writes as the container's user,
# and cannot leave the container, whatever links it follows. docker cp serves an image without tar and sh.

use_root
use_box "$id"
need_tools
use_begin
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

# hold pauses the container while docker resolves a path in it, so that nothing inside can put a link in the way.
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
	words=$(docker exec -i "$container" sh -c "$unpack" sh "$path" <&4 2>&1 >/dev/null) || code=$?
	;;
in.copy)
	hold
	words=$(docker cp - "$container:/" <&4 2>&1 >/dev/null) || code=$?
	release
	;;
out.tar)
	{
		words=$({
			docker exec "$container" sh -c "$pack" sh "$path" "$holes" "$fill" "$sift" </dev/null || code=$?
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
	;;
esac
say "{\"exit\":$code,\"service\":\"$service\",\"path\":$(json_string "$path"),\"words\":$(json_string "${words:-}")}"
