# Looks at sandboxes: the common part of the answers of create, wait and status.

# look_at ID … sets records to those of these sandboxes: "box ID", then the manifest's lines, "lease.until", "walls" if
# those of a guarded one are gone, and "busy OPERATION" while an operation works on one that is not ready.
look_at() {
	records=
	for look_id; do
		box=$root/$look_id
		[ -d "$box" ] || continue
		look_record= look_state=
		look_add "box $look_id
folder=$box"
		if [ -f "$box/manifest" ]; then
			while IFS= read -r line; do
				look_add "$line"
				case $line in
				state=*) look_state=${line#*=} ;;
				guard_bridges=*)
					for device in ${line#*=}; do
						[ -e "/sys/class/net/$device" ] || look_add "walls=its bridge $device is gone"
					done
					;;
				esac
			done <"$box/manifest"
		fi
		case " ${unwalled-} " in *" $look_id "*) look_add 'walls=its firewall rules are missing and could not be put back' ;; esac
		if [ -f "$box/lease" ]; then
			while IFS= read -r line; do
				case $line in until=* | generation=*) look_add "lease.$line" ;; esac
			done <"$box/lease"
		fi
		! get_from "$box/idle" since_ms || look_add "idle_since=$value"
		! lease_left || look_add "left=$left"
		case $look_state in
		ready | expired) ;;
		*)
			read_holder
			if [ -n "$holder_pid" ] && holder_lives; then
				look_add "busy ${holder_op:-?}"
			elif [ -e "$box/lock" ] && ! flock -n "$box/lock" true 2>/dev/null </dev/null; then
				look_add 'busy ?'
			fi
			;;
		esac
		records=$records$look_record
	done
}

# look_add LINE adds a line to look_record, that of one sandbox: those of all are too long to be copied with every line.
look_add() {
	look_record="$look_record$1
"
}

# answer_with EXTRA answers with the containers, the records of the ids in the variable ids, and EXTRA: members of a JSON
# object ending in a comma, or nothing.
answer_with() {
	looked
	json_text "$warnings"
	answer "{$1$looked\"warnings\":$json}"
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
	look_at $ids
	exits_of "$records"
	json_text "$records"
	looked="\"containers\":[$containers],\"records\":$json,"
	json_text "$health"
	looked="$looked\"health\":$json,"
	json_text "$exits"
	looked="$looked\"exits\":$json,"
}

# health_of CONTAINER … sets health to the last checks of each: lines with the container, the exit code and the check's
# output as a JSON string, which docker limits to 4096 bytes.
health_of() {
	health=$(docker container inspect -f '{{$id := .Id}}{{with .State.Health}}{{range .Log}}{{$id}} {{.ExitCode}} {{json .Output}}{{println}}{{end}}{{end}}' "$@" 2>/dev/null </dev/null)
}
