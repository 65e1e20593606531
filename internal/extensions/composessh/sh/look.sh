# Looking at sandboxes: what the answers of create, wait and status have in
# common.

# look_at ID … prints the records of these sandboxes as text: "box ID", then the
# manifest's lines, "lease.until", and "busy OPERATION" while one that is not
# ready is being worked on.
look_at() {
	for look_id; do
		box=$root/$look_id
		[ -d "$box" ] || continue
		printf 'box %s\nfolder=%s\n' "$look_id" "$box"
		look_state=
		if [ -f "$box/manifest" ]; then
			while IFS= read -r line; do
				printf '%s\n' "$line"
				case $line in state=*) look_state=${line#*=} ;; esac
			done <"$box/manifest"
		fi
		if [ -f "$box/lease" ]; then
			while IFS= read -r line; do
				case $line in until=* | generation=*) printf 'lease.%s\n' "$line" ;; esac
			done <"$box/lease"
		fi
		if lease_left; then
			printf 'left=%s\n' "$left"
		fi
		case $look_state in ready | expired) continue ;; esac
		read_holder
		if [ -n "$holder_pid" ] && holder_lives; then
			printf 'busy %s\n' "${holder_op:-?}"
		elif [ -e "$box/lock" ] && ! flock -n "$box/lock" true 2>/dev/null </dev/null; then
			printf 'busy ?\n'
		fi
	done
}

# containers_of FILTER … sets containers to a JSON array, one array per
# container of ours: id, account, generation, service, ports, status, container.
# Any image brings what labels it likes, but none gives its container a name. So
# a container counts where its name begins with the project of its labels, and
# that is the id too; who filters by project sees those of another id as well.
containers_of() {
	case $* in
	*com.docker.compose.project=*) look_own='' ;;
	*) look_own='"\2",' ;;
	esac
	containers=$(docker ps -a --no-trunc "$@" --format '{{json .Names}} {{json (.Label "com.docker.compose.project")}} [{{json (.Label "sandboxer.id")}},{{json (.Label "sandboxer.account")}},{{json (.Label "sandboxer.generation")}},{{json (.Label "com.docker.compose.service")}},{{json .Ports}},{{json .Status}},{{json .ID}}]' 2>&1 </dev/null) ||
		fail_docker 'the containers cannot be listed' "$containers"
	containers=$(printf '%s' "$containers" | sed -n -e "s/^\"\([^\"]*,\)\{0,1\}\([^\",]*\)[-_][^\"]*\" \"\2\" \(\[$look_own.*\)\$/\3/p" | sed -e '$!s/$/,/')
}

# answer_with EXTRA answers with the containers, the records of the ids in the
# variable ids, and EXTRA, members of a JSON object ending in a comma or nothing.
answer_with() {
	# shellcheck disable=SC2086
	records=$(look_at $ids | json_string)
	answer "{$1\"containers\":[$containers],\"records\":$records,\"warnings\":$(json_string "$warnings")}"
}
