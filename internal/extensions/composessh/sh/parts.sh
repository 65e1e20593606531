# What a sandbox holds, as one file: its parts one after another, then a list of them, and last a line of 32 bytes with the
# list's length. Lines of the list, the first of which names the format and the kind:
#
#	workspace SIZE           a tar
#	volume SIZE KEY          a tar of the named volume
#	data SIZE SERVICE PLACE  a tar of a service's volume without a name, mounted there
#	files SIZE SERVICE       a service's own file system, as docker exports it
#	config SIZE SERVICE …    the configuration of its image: the beginning of a JSON object; … are the names of files that
#	                         docker made below /run/secrets, empty, to mount secrets there
#
# The last three belong to the kind filesystem. A service of whose file system nothing was changed has no files. Neither the
# environment of a container nor the files of its secrets are in any part.

parts_format='sandboxer-snapshot 1'
# The most entries of one archive.
parts_max=4000000

# mount_of FOLDER PLACE [OPTION] sets mounted, an option's value of docker run.
mount_of() {
	mounted=$(printf '%s' "$1" | sed 's/"/""/g')
	mounted="type=bind,\"src=$mounted\",dst=$2${3:+,$3}"
}

# parts_job MAX TO FROM … adds archives of folders to the file TO and prints their sizes. Of GNU tar, code 1 says that files
# changed meanwhile. 46 = it holds a device, 47 = it holds too much.
# shellcheck disable=SC2016
parts_job='
max=$1 to=$2 at=0 options=
shift 2
case $(tar --version 2>/dev/null) in *GNU*) options="-S --format=posix --sparse-version=0.1" ;; esac
for from; do
	cd "$from" || exit
	odd=$(find . -xdev "(" -type b -o -type c ")" | head -n 1)
	[ -z "$odd" ] || { echo "$odd" >&2 && exit 46; }
	[ "$(find . -xdev | head -n "$max" | wc -l)" -lt "$max" ] || exit 47
	code=0
	tar $options -cf - . >>"$to" || code=$?
	[ "$code" = 0 ] || { [ "$code" = 1 ] && [ -n "$options" ]; } || exit 48
	now=$(wc -c <"$to")
	echo "size $((now - at))"
	at=$now
done'

# parts_take FOLDER KIND LIVE makes the file data in a folder. The sandbox is taken; it is held still meanwhile, unless LIVE
# is set.
parts_take() {
	shelf=$1 parts_kind=$2
	: >"$shelf/data" || parts_full
	# A tar of the toolbox outlives a killed script.
	if [ -n "$3" ]; then manifest_put held yes; else hold_still; fi
	parts_volumes
	parts_list=workspace parts_from=
	while IFS=' ' read -r its_name its_driver its_options its_key; do
		[ -n "$its_name" ] || continue
		[ "$its_driver $its_options" = 'local 0' ] ||
			fail unsupported "the volume $its_key is not of the plain local driver, so its files cannot be copied" 'drop driver and driver_opts of the volume'
		parts_from="$parts_from $its_name" parts_list="$parts_list
volume $its_key"
	done <<-END
		$volumes
	END
	[ "$parts_kind" != filesystem ] || parts_services
	while IFS=' ' read -r its_name its_place; do
		[ -n "$its_name" ] || continue
		parts_from="$parts_from $its_name" parts_list="$parts_list
data $its_place"
	done <<-END
		${unnamed-}
	END
	# Not into a file: the disk may be full.
	said=$(parts_copy "$3" 2>&1 </dev/null) || parts_fail $?
	parts_sized
	step copied
	[ "$parts_kind" != filesystem ] || parts_export
	move_on
	parts_list="$parts_format $parts_kind
$parts_list
"
	printf '%s%s %012d\n' "$parts_list" "${parts_format% *}" "${#parts_list}" >>"$shelf/data" || parts_full
}

# parts_copy LIVE runs the job. Root reads what stands still where it lies: a container of the toolbox starts in the time
# of copying some hundred megabytes. Whoever is at work inside could meanwhile make a file a link to one of the host, so
# that a live copy is the toolbox's.
parts_copy() {
	set -f
	if [ -z "$1" ] && [ "$(id -u)" = 0 ]; then
		shift
		for its_name in $parts_from; do
			its_place=$(docker volume inspect -f '{{.Mountpoint}}' -- "$its_name" 2>/dev/null) && [ -d "$its_place" ] || break
			set -- "$@" "$its_place"
		done
		[ "$#" != "$(printf '%s' "$parts_from" | wc -w)" ] || {
			# Without the locks: if this script is killed, the sandbox goes on at once, and the copy is of no use.
			sh -c "$parts_job" sh "$parts_max" "$shelf/data" "$box/workspace" "$@" 7>&- 8>&- 9>&-
			return
		}
	fi
	mount_of "$shelf" /to
	set -- --mount "$mounted"
	mount_of "$box/workspace" /from/0 readonly
	set -- "$@" --mount "$mounted"
	n=1 its_place=/from/0
	for its_name in $parts_from; do
		set -- "$@" --mount "type=volume,src=$its_name,dst=/from/$n,readonly"
		its_place="$its_place /from/$n" n=$((n + 1))
	done
	# shellcheck disable=SC2086
	toolbox_run "$@" --cap-add DAC_OVERRIDE -- sh -c "$parts_job" sh "$parts_max" /to/data $its_place
}

parts_full() { fail exhausted "the copy of $id cannot be stored in $shelf" 'free some disk space on the host'; }

parts_fail() {
	said=$(printf '%s\n' "$said" | grep -v '^size ' | tail -n 3)
	case $1:$said in
	46:*) fail invalid "$id holds a device, which cannot be copied: ${said##*
}" 'remove it' ;;
	47:*) fail invalid "$id holds $parts_max files or more" 'remove some' ;;
	125:*) fail_docker 'the toolbox cannot run' "${said:-${why-}}" ;;
	*'o space left'* | *'uota exceeded'* | *'rote only'* | *'hort write'*) parts_full ;;
	esac
	fail unavailable "the files of $id could not be copied" 'check them on the host, and try again' "$said"
}

# parts_sized puts the sizes that the job printed into the list.
parts_sized() {
	sized='' sizes=$(printf '%s\n' "$said" | sed -n 's/^size //p')
	while IFS=' ' read -r type rest; do
		size=${sizes%%
*}
		sizes=${sizes#*
}
		case $size in '' | *[!0-9]*) fail unavailable "the files of $id could not be copied" 'try again' "the toolbox printed $said" ;; esac
		sized="${sized:+$sized
}$type $size${rest:+ $rest}"
	done <<-END
		$parts_list
	END
	parts_list=$sized
}

# parts_volumes sets volumes, one line for each named one.
parts_volumes() {
	volumes=''
	ours_volumes "$id" || fail_docker 'the volumes cannot be listed' "$ours"
	[ -n "$ours" ] || return 0
	# shellcheck disable=SC2086
	volumes=$(docker volume inspect -f '{{.Name}} {{.Driver}} {{len .Options}} {{index .Labels "com.docker.compose.volume"}}' -- $ours 2>&1 </dev/null) ||
		fail_docker 'the volumes could not be inspected' "$volumes"
}

# parts_services sets firsts, a container and its service for each, and unnamed, their volumes without a name. Replicas of a
# service start alike, from the first of them.
parts_services() {
	firsts='' unnamed=''
	containers_of --filter "label=sandboxer.id=$id"
	while IFS='"' read -r _ _ _ _ _ _ _ service _ _ _ _ _ container _; do
		case "
$firsts
" in *" $service
"*) continue ;; esac
		case $service in '' | sandboxer-proxy) continue ;; esac
		firsts="${firsts:+$firsts
}$container $service"
		its_mounts=$(docker container inspect -f '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{.Destination}}{{println}}{{end}}{{end}}' "$container" 2>&1 </dev/null) ||
			fail_docker "the container of $service could not be inspected" "$its_mounts"
		while IFS=' ' read -r its_name its_place; do
			case " $ours " in *" ${its_name:-/} "*) continue ;; esac
			[ -z "$its_name" ] || unnamed="${unnamed:+$unnamed
}$its_name $service $its_place"
		done <<-EOD
			$its_mounts
		EOD
	done <<-END
		$containers
	END
}

# parts_export adds the file systems that were changed.
parts_export() {
	while IFS=' ' read -r container service; do
		[ -n "$container" ] && is_changed "$container" || continue
		begins=$(($(wc -c <"$shelf/data")))
		said=$(docker export "$container" 2>&1 >>"$shelf/data" </dev/null) || parts_fail $?
		ends=$(($(wc -c <"$shelf/data")))
		said=$(docker container inspect -f '{{.Image}}' "$container" 2>&1 </dev/null) &&
			said=$(docker image inspect -f '{"architecture":{{json .Architecture}},"os":{{json .Os}},"config":{{json .Config}}' "$said" 2>&1 </dev/null) ||
			fail_docker "the image of $service could not be inspected" "$said"
		printf '%s' "$said" >>"$shelf/data" || parts_full
		empty=$(docker container inspect -f '{{range .Mounts}}{{.Destination}}{{println}}{{end}}' "$container" 2>/dev/null </dev/null | sed -n 's:^/run/secrets/\([A-Za-z0-9_.-]*\)$: \1:p' | tr -d '\n')
		parts_list="$parts_list
files $((ends - begins)) $service
config $(($(wc -c <"$shelf/data") - ends)) $service$empty"
	done <<-END
		$firsts
	END
	step exported
}

# is_changed CONTAINER: its file system is not its image's, apart from the places that docker made to mount something there.
is_changed() {
	changes=$(docker diff "$1" 2>&1 </dev/null) || fail_docker 'the changes of a container cannot be listed' "$changes"
	[ -n "$changes" ] || return 1
	made=$(docker container inspect -f '{{range .Mounts}}{{.Destination}}{{println}}{{end}}' "$1" 2>/dev/null </dev/null | while IFS= read -r place; do
		while [ -n "$place" ]; do
			printf '%s\n' "$place"
			place=${place%/*}
		done
	done)
	printf '%s\n' "$changes" | sed 's/^[ACD] //' | grep -qvxF -e "$made"
}
