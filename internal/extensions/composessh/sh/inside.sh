# The way into a service of a running sandbox; say is that of frame.sh. Variables: id, service.

# With live streams, the answer is one more message.
answer() { say "$1"; }
progress() { :; }

# json_string TEXT prints it as a JSON string.
json_string() {
	printf '"'
	printf '%s' "$1" | tr '\001-\037' ' ' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | tr -d '\n'
	printf '"'
}

# inside_find sets container, state, pid, user, workdir and mount (the workspace's path, '' = none) of the requested
# service.
inside_find() {
	inside_list
	inside_choose
	inside_facts
}

# inside_list sets containers (lines: id state service) and services. Labels may come from an image; the name comes from
# Compose.
inside_list() {
	containers=$(docker ps -a --no-trunc --filter "label=sandboxer.id=$id" --filter "name=^/?$id[-_]" --format '{{.ID}} {{.State}} {{.Label "com.docker.compose.service"}}' 2>&1 </dev/null) ||
		fail_docker 'the containers could not be listed' "$containers"
	services=''
	inside_each inside_service
	[ -n "$services" ] && return 0
	[ -d "$box" ] || fail not_found "there is no sandbox $id on this host"
	manifest_get ended && fail not_found "the sandbox $id has ended"
	[ -e "$box/manifest" ] || fail not_found "there is no sandbox $id on this host"
	fail not_found "the sandbox $id has no containers: it has not begun, or has ended"
}

# inside_each FUNCTION calls it with id, state and service of each container.
inside_each() {
	set -f
	each_ifs=$IFS
	IFS='
'
	for entry in $containers; do
		IFS=$each_ifs
		# shellcheck disable=SC2086
		set -- "$1" $entry
		# A warning of docker's is not a container.
		case ${2-} in
		*[!0-9a-f]* | '') continue ;;
		esac
		[ "${#2}" = 64 ] && [ -n "${4-}" ] && "$1" "$2" "$3" "$4"
	done
	IFS=$each_ifs
	set +f
}

inside_service() {
	case " $services " in
	*" $3 "*) ;;
	*) services="${services:+$services }$3" ;;
	esac
}

# inside_choose sets service and container.
inside_choose() {
	if [ -z "$service" ]; then
		manifest_get service && service=$value
	fi
	if [ -z "$service" ]; then
		case $services in
		*' '*) fail invalid "the sandbox has several services, and none of them is the default one: $services" 'name the service' ;;
		esac
		service=$services
	fi
	case " $services " in
	*" $service "*) ;;
	*) fail invalid "the sandbox has no service \"$service\"; it has: $services" 'name one of them' ;;
	esac
	container='' state=''
	inside_each inside_take
}

# inside_take takes a running container of the service, if there is one.
inside_take() {
	[ "$3" = "$service" ] || return 0
	[ "$state" = running ] && return 0
	container=$1 state=$2
}

inside_facts() {
	facts=$(docker container inspect -f 'state={{.State.Status}}{{"\n"}}pid={{.State.Pid}}{{range .Mounts}}{{"\n"}}mount={{.RW}} {{.Destination}} {{.Source}}{{end}}{{"\n"}}workdir={{.Config.WorkingDir}}{{"\n"}}user={{.Config.User}}' "$container" 2>&1 </dev/null) || {
		case $facts in
		*'No such container'*) fail conflict "the service $service has no container now" 'it may be starting or ending: try again' ;;
		esac
		fail_docker "the container of $service could not be inspected" "$facts"
	}
	state='' pid='' mount='' writable='' workdir='' user=''
	set -f
	each_ifs=$IFS
	IFS='
'
	for entry in $facts; do
		# The first of a kind counts: an image's own comes last.
		case $entry in
		state=*) [ -n "$state" ] || state=${entry#*=} ;;
		pid=*) [ -n "$pid" ] || pid=${entry#*=} ;;
		mount=*" $box/workspace" | mount=*" $box/workspace/")
			entry=${entry#mount=}
			[ -n "$mount" ] || {
				writable=${entry%% *}
				entry=${entry#* }
				mount=${entry%" $box/workspace"*}
			}
			;;
		workdir=*) [ -n "$workdir" ] || workdir=${entry#*=} ;;
		user=*) [ -n "$user" ] || user=${entry#*=} ;;
		esac
	done
	IFS=$each_ifs
	set +f
	inside_running
}

inside_running() {
	case $state in
	running) ;;
	restarting) fail unavailable "the service $service is restarting" "its log says why: look at it, then try again" ;;
	paused)
		manifest_get paused && [ "$value" = 1 ] && fail paused "$id"
		manifest_get held && [ -n "$value" ] && fail unavailable "the sandbox $id is held still for a moment, while it is copied" 'try again'
		fail conflict "the service $service is paused" "run \`docker unpause\` on the host to resume it"
		;;
	*) fail conflict "the service $service is not running: its container is $state" 'see its log; replace the sandbox, or give the service a long-running command' ;;
	esac
}

# inside_path PATH sets path: absolute ones as they are, others below the workspace, or below the working folder if the
# service has no workspace.
inside_path() {
	case $1 in
	/*) path=$1 ;;
	*)
		path=${mount:-${workdir:-/}}
		[ -z "$1" ] || path=${path%/}/$1
		;;
	esac
}
