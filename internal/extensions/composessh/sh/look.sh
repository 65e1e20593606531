# Looks at sandboxes: the common part of the answers of create, wait and status.

# look_at ID … prints the records of these sandboxes as text: "box ID", then the manifest's lines, "lease.until", "walls"
# if those of a guarded one are gone, and "busy OPERATION" while an operation works on one that is not ready.
look_at() {
	for look_id; do
		box=$root/$look_id
		[ -d "$box" ] || continue
		printf 'box %s\nfolder=%s\n' "$look_id" "$box"
		look_state=
		if [ -f "$box/manifest" ]; then
			while IFS= read -r line; do
				printf '%s\n' "$line"
				case $line in
				state=*) look_state=${line#*=} ;;
				guard_bridges=*)
					for device in ${line#*=}; do
						[ -e "/sys/class/net/$device" ] || printf 'walls=its bridge %s is gone\n' "$device"
					done
					;;
				esac
			done <"$box/manifest"
		fi
		case " ${unwalled-} " in *" $look_id "*) printf 'walls=its firewall rules are missing and could not be put back\n' ;; esac
		if [ -f "$box/lease" ]; then
			while IFS= read -r line; do
				case $line in until=* | generation=*) printf 'lease.%s\n' "$line" ;; esac
			done <"$box/lease"
		fi
		! get_from "$box/idle" since_ms || printf 'idle_since=%s\n' "$value"
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

# answer_with EXTRA answers with the containers, the records of the ids in the variable ids, and EXTRA: members of a JSON
# object ending in a comma, or nothing.
answer_with() {
	looked
	answer "{$1$looked\"warnings\":$(json_string "$warnings")}"
}

# looked sets looked to those members of an answer. It asks for health checks only if one fails.
looked() {
	health='' unhealthy=''
	case $containers in *'(unhealthy)"'*)
		while IFS='"' read -r _ _ _ _ _ _ _ _ _ _ _ status _ container _; do
			case $status in *'(unhealthy)') unhealthy="$unhealthy $container" ;; esac
		done <<-END
			$containers
		END
		# shellcheck disable=SC2086
		health_of $unhealthy
		;;
	esac
	# shellcheck disable=SC2086
	records=$(look_at $ids)
	exits_of "$records"
	looked="\"containers\":[$containers],\"records\":$(json_string "$records"),\"health\":$(json_string "$health"),\"exits\":$(json_string "$exits"),"
}

# health_of CONTAINER … sets health to the last checks of each: lines with the container, the exit code and the check's
# output as a JSON string, which docker limits to 4096 bytes.
health_of() {
	health=$(docker container inspect -f '{{$id := .Id}}{{with .State.Health}}{{range .Log}}{{$id}} {{.ExitCode}} {{json .Output}}{{println}}{{end}}{{end}}' "$@" 2>/dev/null </dev/null)
}
