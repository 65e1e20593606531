# The way into a service of a running sandbox, and the channel beside a
# command's streams. Variables: channel (a nonce), id, service.

# say JSON tells the caller something beside the streams. What runs inside does
# not know the nonce, so it cannot speak here.
say() { printf '\036%s%s\036' "$channel" "$1" >&2; }

# With live streams an answer is one more thing said.
answer() { say "$1"; }
progress() { :; }

# json_string TEXT prints it as a JSON string.
json_string() {
	printf '"'
	printf '%s' "$1" | tr '\001-\037' ' ' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | tr -d '\n'
	printf '"'
}

# inside_find sets container, state, pid, user, workdir and mount (where the
# workspace is, '' = nowhere) of the service asked for.
inside_find() {
	inside_list
	inside_choose
	inside_facts
}

# inside_list sets containers (lines: id state service) and services.
inside_list() {
	containers=$(docker ps -a --no-trunc --filter "label=sandboxer.id=$id" --format '{{.ID}} {{.State}} {{.Label "com.docker.compose.service"}}' 2>&1 </dev/null) ||
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
		# A warning of docker's is no container.
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

# Of several containers of the service, a running one.
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
		# The first of a kind counts: what comes from an image comes last.
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
	paused) fail conflict "the service $service is paused" 'resume it first' ;;
	*) fail conflict "the service $service is not running: its container is $state" 'its log says why; make the sandbox anew, or give the service something to run' ;;
	esac
}

# inside_path PATH sets path: as it is when absolute, else below the workspace,
# or the working folder where the service has no workspace.
inside_path() {
	case $1 in
	/*) path=$1 ;;
	*)
		path=${mount:-${workdir:-/}}
		[ -z "$1" ] || path=${path%/}/$1
		;;
	esac
}

# mark_killer is a script for the host's sh, to be run where the container's
# processes can be seen: it kills what carries the mark $1 in its environment,
# the children and the sessions of that, until nothing is left. Whoever drops the
# mark is still somebody's child; the processes of others never have it.
# shellcheck disable=SC2016
mark_killer='
want=SANDBOXER_EXEC=$1 round=0
marked() {
	if [ -n "$zero" ]; then
		( cd /proc && grep -lzxF "$want" [0-9]*/environ 2>/dev/null )
	else
		for f in /proc/[0-9]*/environ; do
			tr "\000" "\n" <"$f" 2>/dev/null | grep -qxF "$want" && echo "${f#/proc/}"
		done
	fi
}
zero=; printf "a\000b\000" | grep -qzx b 2>/dev/null && zero=1
while :; do
	list=" "
	for f in $(marked); do list="$list${f%%/*} "; done
	sessions=" " grown=1
	while [ -n "$grown" ]; do
		grown=
		for s in /proc/[0-9]*/stat; do
			read -r line 2>/dev/null <"$s" || continue
			p=${s#/proc/} p=${p%/stat}
			set -- ${line##*) }
			[ "$1" != Z ] || continue
			case $list in *" $p "*)
				case $sessions in *" $4 "*) ;; *) [ "$4" -le 1 ] || { sessions="$sessions$4 " grown=1; } ;; esac
				continue ;;
			esac
			case $list in *" $2 "*) list="$list$p " grown=1; continue ;; esac
			case $sessions in *" $4 "*) list="$list$p " grown=1 ;; esac
		done
	done
	[ "$list" != " " ] || exit 0
	kill -9 $list 2>/dev/null
	round=$((round + 1))
	[ "$round" -lt 40 ] || exit 1
	[ "$round" -lt 3 ] || sleep 0.1 2>/dev/null || sleep 1
done
'

# mark_kill MARK kills all that the mark started in container. As root the
# host's own view is enough; else the toolbox looks from inside.
mark_kill() {
	if [ "$(id -u)" = 0 ]; then
		sh -c "$mark_killer" sh "$1" </dev/null >/dev/null 2>&1
	else
		toolbox_run --pid "container:$container" --cap-add SYS_PTRACE --cap-add KILL -- sh -c "$mark_killer" sh "$1" </dev/null >/dev/null 2>&1
	fi
}
