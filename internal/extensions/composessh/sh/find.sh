# Operation: find one sandbox by id alone. It answers absent only if both the folder and docker agree.

use_root
use_box "$id"
need_tools
if [ -d "$box" ]; then
	if manifest_get account && [ "$value" != "$account" ]; then
		fail conflict "$id belongs to the account $value"
	fi
	lock_sandbox 0
	case $? in
	1)
		case ${holder_op-} in '' | *[!a-z]*) holder_op='an operation' ;; esac
		answer "{\"found\":true,\"busy\":\"$holder_op\"}"
		exit 0
		;;
	0)
		unlock_sandbox
		answer '{"found":true}'
		exit 0
		;;
	esac
fi
ours_containers "$id" || fail_docker 'the containers cannot be listed' "$ours"
[ -n "$ours" ] || ours_networks "$id" || fail_docker 'the networks cannot be listed' "$ours"
[ -n "$ours" ] || ours_volumes "$id" || fail_docker 'the volumes cannot be listed' "$ours"
if [ -n "$ours" ]; then
	answer '{"found":true}'
else
	answer '{"found":false}'
fi
