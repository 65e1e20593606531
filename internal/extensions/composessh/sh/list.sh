# What docker holds of a sandbox. One rule tells, whether it is looked at or
# removed: it carries the sandbox's label, and its name begins with the id, as
# Compose names what is a project's. Anybody's image and anybody's container can
# carry any label, but only who makes a thing names it.

# How long docker may take for what it answers at once, if at all (s).
: "${docker_patience:=30}"

# docker_soon ARG … is docker for such questions: on a host that is full or stuck it
# may never answer. Then it is ended, 124, and says so. Here as elsewhere a sleep is
# ended by KILL: a shell that is just forked to become one still has our trap, and
# loses a TERM.
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

# is_named ID NAMES: one of the names, which have commas between them, is one of
# the sandbox's. The caller has turned globbing off.
is_named() {
	named=1
	IFS=,
	for its_name in $2; do
		case $its_name in
		# What another container calls it is no name of its own.
		*/*) ;;
		# Compose puts twelve digits before the name of what replaces another.
		"$1"[-_]* | ????????????_"$1"[-_]*) named=0 ;;
		esac
	done
	IFS=$blanks
	return "$named"
}

# ours_containers ID sets ours to the ids of all containers of the sandbox; false
# when docker could not be asked, with ours its words.
ours_containers() { list_named "$1" ps -a --no-trunc --filter "label=sandboxer.id=$1" --format '{{.ID}} {{.Names}}'; }

# ours_networks ID and ours_volumes ID are the same for networks and volumes.
ours_networks() { list_named "$1" network ls --no-trunc --filter "label=sandboxer.id=$1" --format '{{.ID}} {{.Name}}'; }
ours_volumes() { list_named "$1" volume ls -q --filter "label=sandboxer.id=$1"; }

# list_ours COMMAND… is list_named for what no name tells.
list_ours() { list_named '' "$@"; }

# list_named ID COMMAND… takes whole ids alone, or names for what is listed by
# name: what else docker or a wrapper of it has to say must never be removed by
# that name. With an ID each line has the names too, and what is not the sandbox's
# by name is passed over. A line that looks like an id and is none is not
# understood, which is a failure: nothing is gone because it could not be read.
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

# containers_of FILTER … sets containers to a JSON array without its brackets, one
# array per line and container of ours: id, account, generation, service, ports,
# status, container, networks, folder of the project.
containers_of() { container_rows '' "$@"; }

# container_rows ID FILTER … is the same of those that are named as the
# sandbox's, whoever's label they carry; '' = each as its label says.
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

# read_engine sets engine_id to what tells the engine that docker talks to from
# all others, or to nothing where it does not answer.
read_engine() {
	engine_id=$(docker info --format '{{.ID}}' 2>/dev/null </dev/null) || engine_id=
	case $engine_id in *[!A-Za-z0-9:-]*) engine_id= ;; esac
}
