# What docker holds of a sandbox, by its label.

# ours_containers ID sets ours to the ids of all containers that carry the
# sandbox's label; false when docker could not be asked, with ours its words.
ours_containers() { list_ours ps -aq --no-trunc --filter "label=sandboxer.id=$1"; }

# ours_networks ID and ours_volumes ID are the same for networks and volumes.
ours_networks() { list_ours network ls -q --no-trunc --filter "label=sandboxer.id=$1"; }
ours_volumes() { list_ours volume ls -q --filter "label=sandboxer.id=$1"; }

# list_ours COMMAND… takes whole ids alone, or names for what is listed by name:
# what else docker or a wrapper of it has to say must never be removed by that
# name. A line of one word that is neither is not understood, which is a failure:
# nothing is gone because it could not be read.
list_ours() {
	ours='' names='' strange=
	listed=$(docker "$@" 2>/dev/null </dev/null) || {
		ours=$(docker "$@" 2>&1 >/dev/null </dev/null)
		ours=${ours:-docker $1 failed without a word}
		return 1
	}
	case "$1 $*" in 'volume '* | *' --format '*) names=1 ;; esac
	glob_off
	IFS='
'
	for word in $listed; do
		if [ -n "$names" ]; then
			case $word in
			*[!A-Za-z0-9_.-]* | [!A-Za-z0-9]*) word= ;;
			esac
		else
			case $word in
			*[!0-9a-f]*) word= ;;
			*) [ "${#word}" = 64 ] || strange="docker listed $word, which is no id" ;;
			esac
		fi
		[ -z "$word" ] || ours="${ours:+$ours }$word"
	done
	IFS=$blanks
	glob_on
	[ -n "$strange" ] || return 0
	ours=$strange
	return 1
}

# read_engine sets engine_id to what tells the engine that docker talks to from
# all others, or to nothing where it does not answer.
read_engine() {
	engine_id=$(docker info --format '{{.ID}}' 2>/dev/null </dev/null) || engine_id=
	case $engine_id in *[!A-Za-z0-9:-]*) engine_id= ;; esac
}
