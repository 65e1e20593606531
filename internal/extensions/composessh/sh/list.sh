# Docker's objects of a sandbox. One rule decides for looks and removals: an object carries the sandbox's label, and its
# name begins with the id, as Compose names a project's objects. Any image and any container can carry any label, but
# only its maker names an object.

# How long docker may take for an immediate answer (s).
: "${docker_patience:=30}"

# docker_soon ARG … asks docker such a question: on a full or stuck host it may never answer. Then it is ended, 124, and
# says so. Sleeps are ended by KILL, here and elsewhere: a shell just forked to become one still has our trap, and loses a
# TERM.
docker_soon() {
	docker "$@" </dev/null &
	soon=$!
	(
		over='' nap=''
		trap 'over=1; [ -z "$nap" ] || kill -9 "$nap" 2>/dev/null' TERM
		for rest in "$docker_patience" 2; do
			sleep "$rest" &
			nap=$!
			[ -z "$over" ] || kill -9 "$nap" 2>/dev/null
			wait "$nap"
			[ -z "$over" ] || exit 0
			[ "$rest" = 2 ] || kill -TERM "$soon" 2>/dev/null || exit 0
		done
		kill -KILL "$soon" 2>/dev/null
	) </dev/null >/dev/null 2>&1 7>&- 8>&- 9>&- &
	soon_dog=$!
	wait "$soon" 2>/dev/null
	soon_code=$?
	kill -TERM "$soon_dog" 2>/dev/null
	wait "$soon_dog" 2>/dev/null
	case $soon_code in
	137 | 143)
		echo "docker $1 gave no answer within $docker_patience s" >&2
		return 124
		;;
	esac
	return "$soon_code"
}

# seen_lately NAME [TEXT] sets seen to what docker said to a script of this root at most three seconds ago; with TEXT, it
# counts only if it is that. If there is nothing, the caller asks, sets seen, and calls see_lately NAME: of scripts that
# begin together, one asks for all. The answer counts from the time of the question.
seen_lately() {
	was_seen "$@" && return 0
	{ command exec 5>>"$root/$1.lock"; } 2>/dev/null && flock -w 30 5
	was_seen "$@" || return 1
	exec 5>&-
}

was_seen() {
	read_clock
	seen='' seen_boot='' seen_at=
	[ -f "$root/$1" ] || return 1
	{
		IFS=' ' read -r seen_boot seen_at
		while IFS= read -r line; do
			seen="${seen:+$seen
}$line"
		done
	} 2>/dev/null <"$root/$1"
	[ "$seen_boot" = "$boot" ] && [ "$seen_at" -le "$uptime" ] && [ "$uptime" -lt "$((seen_at + 300))" ] || return 1
	[ $# = 1 ] || [ "$seen" = "$2" ]
}

see_lately() {
	{ printf '%s %s\n%s\n' "$boot" "$uptime" "$seen" >"$root/$1.$$" && mv -f "$root/$1.$$" "$root/$1"; } 2>/dev/null
	exec 5>&-
}

# is_named ID NAMES: one of the names, separated by commas, is one of the sandbox's. The caller has turned globbing off.
is_named() {
	named=1
	IFS=,
	for its_name in $2; do
		case $its_name in
		# A name that another container uses for it is not its own.
		*/*) ;;
		# Compose puts twelve digits before the name of a container that replaces another.
		"$1"[-_]* | ????????????_"$1"[-_]*) named=0 ;;
		esac
	done
	IFS=$blanks
	return "$named"
}

# ours_containers ID sets ours to the ids of all containers of the sandbox; false if docker did not answer, with its
# message in ours.
ours_containers() { list_named "$1" ps -a --no-trunc --filter "label=sandboxer.id=$1" --format '{{.ID}} {{.Names}}'; }

# ours_networks ID and ours_volumes ID do the same for networks and volumes.
ours_networks() { list_named "$1" network ls --no-trunc --filter "label=sandboxer.id=$1" --format '{{.ID}} {{.Name}}'; }
ours_volumes() { list_named "$1" volume ls -q --filter "label=sandboxer.id=$1"; }

# list_ours COMMAND… is list_named for objects without a telling name.
list_ours() { list_named '' "$@"; }

# list_named ID COMMAND… accepts only whole ids, or names for objects listed by name: other output of docker or of a
# wrapper must never be removed by that name. With an ID each line has the names too, and objects that are not the
# sandbox's by name are skipped. A line that only looks like an id is a failure: an unreadable answer proves no absence.
list_named() {
	named_for=$1
	shift
	ours='' by_name='' strange=
	listed=$(docker_soon "$@" 2>/dev/null) || {
		[ "$?" != 124 ] || ours="docker $1 gave no answer within $docker_patience s"
		[ -n "$ours" ] || ours=$(docker_soon "$@" 2>&1 >/dev/null)
		ours=${ours:-docker $1 failed without a word}
		return 1
	}
	case "$1 $*" in 'volume '* | *" --format {{.Name}}") by_name=1 ;; esac
	glob_off
	IFS='
'
	for line in $listed; do
		if [ -n "$by_name" ]; then
			word=$line
			case $word in
			*[!A-Za-z0-9_.-]* | [!A-Za-z0-9]*) word= ;;
			esac
		else
			word=${line%% *}
			[ -n "$named_for" ] || word=$line
			case $word in
			*[!0-9a-f]*) word= ;;
			*) [ "${#word}" = 64 ] || strange="docker listed $word, which is no id" ;;
			esac
			[ -z "$named_for" ] || [ "$word" != "$line" ] || strange="docker listed $word without a name"
		fi
		[ -n "$word" ] || continue
		[ -z "$named_for" ] || is_named "$named_for" "${line#* }" || continue
		ours="${ours:+$ours }$word"
	done
	IFS=$blanks
	glob_on
	[ -n "$strange" ] || return 0
	ours=$strange
	return 1
}

# containers_of FILTER … sets containers to a JSON array without its brackets, one array per line and container of ours:
# id, account, generation, service, ports, status, container, networks, folder of the project.
containers_of() { container_rows '' "$@"; }

# container_rows ID FILTER … does the same for those named as the sandbox's, whatever their label; '' = each by its label.
container_rows() {
	named_for=$1
	shift
	listed=$(docker_soon ps -a --no-trunc "$@" --format '{{json .Names}} [{{json (.Label "sandboxer.id")}},{{json (.Label "sandboxer.account")}},{{json (.Label "sandboxer.generation")}},{{json (.Label "com.docker.compose.service")}},{{json .Ports}},{{json .Status}},{{json .ID}},{{json .Networks}},{{json (.Label "com.docker.compose.project.working_dir")}}]' 2>&1) ||
		fail_docker 'the containers cannot be listed' "$listed"
	containers=
	glob_off
	IFS='
'
	for line in $listed; do
		case $line in '"'*'" ["'*'"]') ;; *) continue ;; esac
		its_names=${line#'"'} its_row=${line#*'" '}
		its_names=${its_names%%'"'*} its_id=${its_row#'["'}
		its_id=${its_id%%'"'*}
		its_id=${named_for:-$its_id}
		[ -n "$its_id" ] && is_named "$its_id" "$its_names" || continue
		containers="${containers:+$containers,
}$its_row"
	done
	IFS=$blanks
	glob_on
}

# exits_of RECORDS sets exits for containers of sandboxes whose end is that of their entrypoint: lines with the container,
# its exit code and when it ended, by the host's clock.
exits_of() {
	exits='' exited=''
	case $1:$containers in *'
entrypoint=1'*'"Exited ('*) ;; *) return 0 ;; esac
	while IFS='"' read -r _ _ _ _ _ _ _ _ _ _ _ status _ container _; do
		case $status in 'Exited ('*) exited="$exited $container" ;; esac
	done <<-END
		$containers
	END
	# shellcheck disable=SC2086
	exits=$(docker container inspect -f '{{.Id}} {{.State.ExitCode}} {{.State.FinishedAt}}' $exited 2>/dev/null </dev/null)
}

# note_exit records when and with what code the entrypoint of box has ended, before its container goes.
note_exit() {
	manifest_get entrypoint && [ -n "$value" ] && ! manifest_get exits || return 0
	containers_of --filter "label=sandboxer.id=$id"
	exits_of '
entrypoint=1'
	[ -z "$exits" ] || manifest_put exits "$exits"
}

# read_engine sets engine_id, which identifies docker's engine, or '' if it does not answer.
read_engine() {
	engine_id=$(docker info --format '{{.ID}}' 2>/dev/null </dev/null) || engine_id=
	case $engine_id in *[!A-Za-z0-9:-]*) engine_id= ;; esac
}
