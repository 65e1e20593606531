# What a new sandbox starts from. Variables: origin ('' = nothing, kept = the snapshot of this root, sent = one that follows
# the payload, fork = another sandbox of this root), snapshot (its id), digest_want ('' = that of its manifest), from (the
# other sandbox), origin_kind, binds and folders (what the stack binds of the workspace, and which of that are folders to be made;
# words for printf %b).

# origin_get puts the file of parts into data, and proves it.
origin_get() {
	data=$box/parts/data
	[ "$origin" = kept ] || mkdir "$box/parts" || fail exhausted "the folder $box/parts cannot be made" 'free some disk space on the host'
	case $origin in
	kept)
		kept_take -s || kept_missing
		kept_data
		data=$at/data
		get_from "$at/manifest" kind
		origin_kind=$value
		get_from "$at/manifest" digest
		digest_want=${digest_want:-$value}
		;;
	sent) origin_receive ;;
	fork) origin_fork ;;
	esac
	[ "$origin" = fork ] || {
		digest_of "$data"
		[ "$digest" = "$digest_want" ] || kept_damaged "its digest is $digest, not $digest_want"
	}
	parts_read
	step found
}

# origin_receive takes pieces, each after a line with its length; 0 ends them.
origin_receive() {
	: >"$data"
	while :; do
		IFS= read -r piece || piece=
		case $piece in
		0) return 0 ;;
		'' | *[!0-9]*) fail interrupted 'the snapshot did not arrive completely' 'try again' ;;
		esac
		head -c "$piece" >>"$data" 2>/dev/null || fail exhausted "the snapshot cannot be stored in $box" 'free some disk space on the host'
	done
}

# origin_fork copies the other sandbox, whose lock it holds only meanwhile. Its own lock has the same descriptor, so this is
# a shell of its own, whose failure comes back as text.
origin_fork() {
	refused=$(
		fail() {
			trap - EXIT
			on_fail "$@"
			printf '%s\n%s\n%s\n%s\n' "$1" "$2" "${3-}" "${4-}"
			exit 1
		}
		on_fail() { :; }
		exec 9>&-
		shelf=$box/parts
		use_box "$from"
		op=fork
		take_ready
		on_fail() {
			on_fail() { :; }
			quietly move_on
			unlock_sandbox
		}
		# A teardown of the new sandbox ends this; the other one goes on at once.
		trap 'fail interrupted "the copy was ended"' TERM
		parts_take "$shelf" filesystem ''
		unlock_sandbox
	) && return 0
	{
		IFS= read -r its_kind
		IFS= read -r its_message
		IFS= read -r its_remedy
		its_detail=$(cat)
	} <<-END
		$refused
	END
	fail "${its_kind:-internal}" "the sandbox $from cannot be copied: $its_message" "$its_remedy" "$its_detail"
}

parts_damaged() { fail invalid "the snapshot $snapshot cannot be read: $1" 'restore from another snapshot'; }

# parts_read sets parts, one line for each part of data: TYPE OFFSET SIZE and the rest.
parts_read() {
	total=$(($(wc -c <"$data")))
	length=$(tail -c 32 "$data" | tr -d '\0')
	case $length in "${parts_format% *} "[0-9]*) length=${length##* } ;; *) parts_damaged 'it has no list of its parts' ;; esac
	case $length in *[!0-9]*) parts_damaged 'it has no list of its parts' ;; esac
	while :; do case $length in 0?*) length=${length#0} ;; *) break ;; esac; done
	[ "$length" -le 65536 ] && [ "$((length + 32))" -le "$total" ] || parts_damaged 'the list of its parts is too long'
	parts='' offset=0
	while IFS=' ' read -r type size rest; do
		if [ "$offset$parts" = 0 ]; then
			[ "$type $size $rest" = "$parts_format $origin_kind" ] || parts_damaged "it is of another format or kind: $type $size $rest"
			parts='
'
			continue
		fi
		case $size in '' | *[!0-9]* | ????????????????*) parts_damaged "a part has the size $size" ;; esac
		case $origin_kind:$type:${rest%% *} in
		*:workspace:) ;;
		*:volume:*[!A-Za-z0-9_.-]* | filesystem:data:*[!A-Za-z0-9_.-]* | filesystem:files:*[!A-Za-z0-9_.-]* | filesystem:config:*[!A-Za-z0-9_.-]*) parts_damaged "a part has the name $rest" ;;
		*:volume:?* | filesystem:data:?* | filesystem:files:?* | filesystem:config:?*) ;;
		*) parts_damaged "it has a part of the type $type" ;;
		esac
		parts="$parts$type $offset $size $rest
"
		offset=$((offset + size))
	done <<-END
		$(tail -c "$((length + 32))" "$data" | head -c "$length" | tr -d '\0')
	END
	case $parts in *'
workspace '*'
workspace '*) parts_damaged 'it has several workspaces' ;; '
workspace '*) ;; *) parts_damaged 'it does not begin with a workspace' ;; esac
	[ "$((offset + length + 32))" = "$total" ] || parts_damaged 'its parts have other sizes than its list says'
}

# part OFFSET SIZE prints a part.
part() { tail -c "+$(($1 + 1))" "$data" | head -c "$2"; }

# each_part FUNCTION ARGUMENT … calls it with TYPE OFFSET SIZE, the rest of each part, and the arguments.
each_part() {
	part_does=$1
	shift
	while IFS=' ' read -r type offset size rest; do
		[ -z "$type" ] || "$part_does" "$type" "$offset" "$size" "$rest" "$@"
	done <<-END
		$parts
	END
}

# origin_images makes an image of each service's file system, which goes with the last sandbox that uses it as one that was
# built, and the file restored.json, which has Compose run them.
origin_images() {
	swapped=
	each_part origin_image
	[ -z "$swapped" ] || printf '{"services":{%s}}' "${swapped#,}" >"$box/restored.json" || fail exhausted "the file $box/restored.json cannot be written" 'free some disk space on the host'
}

origin_image() {
	case $1 in
	files)
		mkdir -p "$box/image" && part "$2" "$3" >"$box/image/layer.tar" || fail exhausted "the files of $4 cannot be stored in $box" 'free some disk space on the host'
		layer_of=$4
		return 0
		;;
	config) [ "${layer_of-}" = "${4%% *}" ] || parts_damaged "it has a configuration without files of $4" ;;
	*) return 0 ;;
	esac
	case " $services " in *" $layer_of "*) ;; *) fail invalid "the stack has no service $layer_of, whose files the snapshot holds" 'restore with the stack that the snapshot was taken of' ;; esac
	digest_of "$box/image/layer.tar"
	layers='"layer.tar"' layer_sums="\"$digest\""
	case $4 in *' '*) origin_unveil "${4#* }" ;; esac
	{
		part "$2" "$3" | tr -d '\n'
		printf ',"rootfs":{"type":"layers","diff_ids":[%s]}}' "$layer_sums"
	} >"$box/image/config.json"
	digest_of "$box/image/config.json"
	digest=${digest#*:} tag=$image_repository:${digest#*:}
	printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":[%s]}]' "$tag" "$layers" >"$box/image/manifest.json" ||
		fail exhausted "the files of $layer_of cannot be stored in $box" 'free some disk space on the host'
	manifest_add images "$digest"
	lock_image "$digest" || fail unavailable "the image $tag is being made for another sandbox, for too long, or its lock cannot be written" 'try again'
	: >"$root/images/$digest.for.$id" || image_fail exhausted "the folder $root/images cannot be written" 'free some disk space on the host'
	recorded=
	read -r recorded 2>/dev/null <"$root/images/$digest.id"
	its_id=$(docker image inspect -f '{{.Id}}' "$tag" 2>/dev/null </dev/null)
	if [ -z "$its_id" ] || [ "$its_id" != "$recorded" ]; then
		why=$(tar -cf - -C "$box/image" . | docker load 2>&1) && its_id=$(docker image inspect -f '{{.Id}}' "$tag" 2>&1 </dev/null) || {
			unlock_image
			fail_docker "the files of the service $layer_of could not become an image" "$why"
		}
		if docker image inspect -f "$image_facts" -- "$tag" 2>/dev/null </dev/null | claims_ours; then
			remove_image "$tag"
			image_fail invalid "the image of the service $layer_of has labels that decide ownership" 'restore from another snapshot'
		fi
		printf '%s\n' "$its_id" >"$root/images/$digest.id" || image_fail exhausted "the file $root/images/$digest.id cannot be written" 'free some disk space on the host'
	fi
	unlock_image
	rm -rf "$box/image"
	swapped="$swapped,\"$layer_of\":{\"image\":\"$tag\"}"
	step imaged
}

# origin_unveil NAMES adds a layer that removes files below /run/secrets which were made only to mount secrets there.
origin_unveil() {
	set -f
	# shellcheck disable=SC2086
	set -- $1
	set +f
	mkdir -p "$box/image/run/secrets"
	for word; do
		case $word in *[!A-Za-z0-9_.-]* | .wh.*) parts_damaged "it names the secret $word" ;; esac
		: >"$box/image/run/secrets/.wh.$word"
		touch -t 200001010000 "$box/image/run/secrets/.wh.$word"
		shift
		set -- "$@" "run/secrets/.wh.$word"
	done
	tar -cf "$box/image/empty.tar" -C "$box/image" -- "$@" || fail exhausted "the files of $layer_of cannot be stored in $box" 'free some disk space on the host'
	rm -rf "$box/image/run"
	digest_of "$box/image/empty.tar"
	layers='"layer.tar","empty.tar"' layer_sums="$layer_sums,\"$digest\""
}

# refill_job SLOTS MAX [BINDS FOLDERS], in the toolbox, replaces the content of /tree/0, /tree/1 … by the archives in /in/data
# at these places (OFFSET:SIZE). It has nothing else to write to, and may make no device. What is refused it names on
# standard output: 49 = an archive that no snapshot has, 50 = a bind that does not lead where it says. Busybox prints names
# with their line breaks and drops what leads out of them, so its names are only counted. Without MAX, nobody could put in
# what has to be refused. With binds, /tree/0 is the workspace, and /seed may have its instructions.
# shellcheck disable=SC2016
refill_job='
max=$2 i=0 odd=
EXTRACT_UNSAFE_SYMLINKS=1
export EXTRACT_UNSAFE_SYMLINKS
names="$max{s/.*/more than $max entries/p;q;}" absolute=
case $(tar --version 2>/dev/null) in *GNU*) absolute=-P names="$names
\\:^/:{p;q;}
\\:^\.\./:{p;q;}
\\:^\.\.\$:{p;q;}
\\:/\.\./:{p;q;}
\\:/\.\.\$:{p;q;}" ;; esac
slice() { case $slot in 0:*) head -c "${slot##*:}" /in/data ;; *) tail -c "+$((${slot%%:*} + 1))" /in/data | head -c "${slot##*:}" ;; esac; }
for slot in $1; do
	cd "/tree/$i" || exit
	[ -z "$max" ] || odd=$(slice | tar $absolute -tf - 2>/dev/null | sed -n "$names")
	[ -z "$odd" ] || { printf "%s\n" "$odd" && exit 49; }
	find . -mindepth 1 -maxdepth 1 -exec rm -rf -- "{}" +
	slice | tar -xpf - || exit 48
	i=$((i + 1))
done
[ $# = 4 ] || exit 0
cd /tree/0 || exit
if [ -f /seed/seed.md ]; then
	[ ! -h .sandboxer ] || rm -f .sandboxer
	mkdir -p .sandboxer && rm -rf .sandboxer/instructions.md && cp /seed/seed.md .sandboxer/instructions.md && chmod 644 .sandboxer/instructions.md || exit 48
fi
for word in $3 / $4; do
	[ "$word" != / ] || { made=1 && continue; }
	path=$(printf "%b." "$word")
	path=${path%.} at=.
	while [ -n "$path" ]; do
		at=$at/${path%%/*}
		case $path in */*) path=${path#*/} ;; *) path= ;; esac
		[ ! -h "$at" ] || { printf "%s\n" "$at" && exit 50; }
		[ -z "$made" ] || [ -e "$at" ] || { mkdir "$at" && chmod 777 "$at"; } || exit 48
	done
done'

# refill_workspace puts the workspace there, which must have what the stack binds before a container is made.
refill_workspace() {
	[ -z "${workspace_filled-}" ] || return 0
	ours='' slots='' slot_count=0 slot_mounts=''
	each_part refill_mount workspace
	mount_of "$box/workspace" /tree/0
	set -- --mount "$mounted"
	if [ -f "$box/seed.md" ]; then
		mkdir -p "$box/seed" && cp "$box/seed.md" "$box/seed/seed.md"
		mount_of "$box/seed" /seed readonly
		set -- "$@" --mount "$mounted"
	fi
	manifest_put held yes
	workspace=1
	refill "$@"
	workspace_filled=1
}

# refill_volumes fills the volumes of the containers, which do not run yet.
refill_volumes() {
	containers_of --filter "label=sandboxer.id=$id"
	ours_volumes "$id" || fail_docker 'the volumes cannot be listed' "$ours"
	slots='' slot_count=0 slot_mounts=''
	each_part refill_mount volume data
	set --
	for mounted in $slot_mounts; do set -- "$@" --mount "$mounted"; done
	workspace=
	refill "$@"
}

# refill OPTION … runs the job with these mounts; with workspace=1 it looks after binds.
refill() {
	mount_of "${data%/*}" /in readonly
	refill_max=$parts_max
	[ "$origin" != fork ] || refill_max= # the job of parts.sh has looked
	set -- "$@" --mount "$mounted" --cap-add DAC_OVERRIDE --cap-add CHOWN --cap-add FOWNER --cap-add FSETID -- sh -c "$refill_job" sh "$slots" "$refill_max"
	[ -z "$workspace" ] || set -- "$@" "$binds" "$folders"
	said=$(toolbox_run "$@" 2>&1 </dev/null) || refill_fail $?
	rm -rf "$box/seed"
	step refilled
}

# refilled drops what is not needed any more.
refilled() {
	rm -rf "$box/seed.md"
	[ "$origin" = kept ] || rm -rf "$box/parts"
	manifest_put held ''
}

# refill_mount TYPE OFFSET SIZE REST WANTED … notes where a part goes, if its type is wanted.
refill_mount() {
	case " $5 ${6-} " in *" $1 "*) ;; *) return 0 ;; esac
	case $1 in
	workspace) ;;
	volume)
		its_volume=${id}_$4
		case " $ours " in *" $its_volume "*) ;; *) fail invalid "the stack has no volume $4, whose files the snapshot holds" 'restore with the stack that the snapshot was taken of' ;; esac
		;;
	data)
		its_volume=
		while IFS='"' read -r _ _ _ _ _ _ _ service _ _ _ _ _ container _; do
			[ "$service" = "${4%% *}" ] && [ -z "$its_volume" ] || continue
			its_volume=$(docker container inspect -f '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{.Destination}}{{println}}{{end}}{{end}}' "$container" 2>/dev/null </dev/null |
				while IFS=' ' read -r its_name its_place; do [ "$its_place" != "${4#* }" ] || echo "$its_name"; done | head -n 1)
		done <<-END
			$containers
		END
		[ -n "$its_volume" ] || fail invalid "the service ${4%% *} of the stack has no volume at ${4#* }, whose files the snapshot holds" 'restore with the stack that the snapshot was taken of'
		;;
	esac
	[ "$1" = workspace ] || slot_mounts="$slot_mounts type=volume,src=$its_volume,dst=/tree/$slot_count"
	slots="$slots $2:$3" slot_count=$((slot_count + 1))
}

refill_fail() {
	refill_said=$(printf '%s\n' "$said" | tail -n 3) said=${said##*
}
	case $1:$refill_said in
	49:*) fail invalid "the snapshot $snapshot holds what no sandbox may: $said" 'restore from another snapshot' ;;
	50:*) fail invalid "the stack binds $said of the workspace, and that is a symbolic link in the snapshot" 'bind another path, or remove the link before the snapshot' ;;
	125:*) fail_docker 'the toolbox cannot run' "${refill_said:-${why-}}" ;;
	*'o space left'* | *'uota exceeded'* | *'rote only'* | *'hort write'*) fail exhausted "the snapshot $snapshot cannot be unpacked" 'free some disk space on the host' "$refill_said" ;;
	esac
	fail invalid "the snapshot $snapshot cannot be unpacked" 'restore from another snapshot' "$refill_said"
}
