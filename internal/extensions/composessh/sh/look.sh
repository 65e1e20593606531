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

# answer_with EXTRA answers with the containers, the records of the ids in the
# variable ids, and EXTRA, members of a JSON object ending in a comma or nothing.
answer_with() {
	looked
	answer "{$1$looked\"warnings\":$(json_string "$warnings")}"
}

# looked sets looked to those members of an answer.
looked() {
	# shellcheck disable=SC2086
	looked="\"containers\":[$containers],\"records\":$(look_at $ids | json_string),"
}
