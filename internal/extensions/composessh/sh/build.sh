# Images of a stack: build_images builds them before it starts. Variables, made by imageVars: keep_images is 1 if built
# images stay; pulls as in pull.sh, and in the same form
#
#   builds: digest|base|context|dockerfile|text|target|network|platform|shm|memory|milli|pids|service|args|hosts|bases
#
# base is the folder below box with the context, service what the image is built for.
# memory is in bytes, milli in thousandths of a CPU (0 = no limit), and pids counts processes and threads. Only the
# classic builder can limit a step, so it builds. Needs images.sh and pull.sh.

# build_images puts every image that is built for the stack on the host, or fails.
build_images() {
	[ "${keep_images-}" != 1 ] || manifest_put keep_images 1
	while IFS='|' read -r digest build_base context dockerfile text target network platform shm memory milli pids service args hosts bases; do
		[ -n "$digest" ] || continue
		manifest_add images "$digest"
		lock_image "$digest"
		case $? in
		1) fail exhausted "the file $root/images/$digest.lock cannot be written" 'free some disk space on the host, and check the rights of the login there' ;;
		2) fail timeout "the image of the stack is being built for another sandbox, for too long (context $context)" 'try again, or raise config.create_timeout' ;;
		esac
		: >"$root/images/$digest.for.$id" || image_fail exhausted "the folder $root/images cannot be written" 'free some disk space on the host'
		rm -f "$root/images/$digest.for.prepared"
		tag=$image_repository:$digest built=
		image_is_ours || build_image
		unlock_image
		[ -z "$built" ] || manifest_add image_ids "$built"
	done <<-END
		$builds
	END
}

# image_is_ours: the image of the line just read exists and is the one that was built here. The lock is held.
image_is_ours() {
	recorded=
	read -r recorded 2>/dev/null <"$root/images/$digest.id" && [ -n "$recorded" ] || return 1
	[ "$(docker image inspect --format '{{.Id}} {{index .Config.Labels "sandboxer.build"}}' "$tag" 2>/dev/null </dev/null)" = "$recorded $digest" ]
}

# build_image builds the image of the line just read. The lock is held.
build_image() {
	inside_base "$context"
	place=$found_inside
	if [ -n "$text" ]; then
		file=$box/Dockerfile.$digest
		decode "$text"
		printf '%s' "$decoded" >"$file" || image_fail exhausted "the file $file cannot be written" 'free some disk space on the host'
	else
		decode "$dockerfile"
		file=$decoded
		case $file in
		*/*) inside_base "${dockerfile%/*}" ;;
		*) inside_base . ;;
		esac
		file=$found_inside/${file##*/}
		if [ ! -f "$file" ] || [ -h "$file" ]; then
			image_fail invalid "there is no file $decoded to build from" "name the Dockerfile itself"
		fi
	fi
	look_at_bases
	decode "$service"
	build_subject="Building the image of $decoded"
	progress "image $build_subject|"
	# The classic builder leaves the results of earlier stages and of failed builds without a name. Its output names them;
	# what existed before the build is not ours.
	record=$root/images/$digest
	[ -f "$record.before" ] || docker image ls --quiet --no-trunc --filter dangling=true >"$record.before" 2>/dev/null </dev/null || rm -f "$record.before"
	run_build "$place" "$file"
	for _ in 1 2 3; do
		! lost_layer || run_build "$place" "$file"
	done
	[ -z "$text" ] || rm -f "$file"
	[ "$build_code" != 124 ] || await_step
	sweep_layers "$record"
	[ "$build_code" = 0 ] || fail_build
	built=$(cat "$box/iid" 2>/dev/null)
	rm -f "$box/iid"
	case $build_why in
	*'Successfully built '*) ;;
	*)
		remove_image "$tag"
		image_fail unsupported 'the docker of the host has no classic builder, and BuildKit bounds no step' 'build the image elsewhere and name it in the profile'
		;;
	esac
	if facts=$(docker image inspect --format "$image_facts" -- "$built" 2>/dev/null </dev/null) && ! printf '%s\n' "$facts" | claims_ours; then
		printf '%s\n' "$built" >"$record.id" || image_fail exhausted "the file $record.id cannot be written" 'free some disk space on the host'
		# Somebody else's image took the name of the previous one.
		[ "${recorded:-$built}" = "$built" ] || ! topmost | grep -qxF -e "$recorded" || remove_image "$recorded"
		return 0
	fi
	remove_image "$tag"
	image_fail invalid 'the image that was built has labels that decide ownership' 'correct the Dockerfile'
}

# await_step waits until the container of an interrupted step is gone, because it holds its layer.
await_step() {
	step_id=$(grep -E '^ ---> Running in [0-9a-f]+$' "$record.log" | tail -n 1)
	step_id=${step_id##* } tries=0
	while [ -n "$step_id" ] && [ "$tries" -lt 100 ] && docker container inspect "$step_id" >/dev/null 2>&1 </dev/null; do
		tries=$((tries + 1))
		sleep 0.1 2>/dev/null || sleep 1
	done
}

# inside_base FIELD sets found_inside to a folder below build_base; it refuses links that lead out of it.
inside_base() {
	decode "$1"
	base=$(cd -P -- "$box/$build_base" && pwd -P) &&
		found_inside=$(cd -P -- "$box/$build_base/$decoded" 2>/dev/null && pwd -P) ||
		image_fail invalid "there is no folder $decoded to build from" 'check the build context'
	case $found_inside/ in
	"$base"/*) ;;
	*) image_fail invalid "the build context $decoded leads out of the stack's own files" 'name a folder without symbolic links' ;;
	esac
}

# run_build FOLDER DOCKERFILE sets build_code and build_why, the last lines.
run_build() {
	place=$1 file=$2
	set -- --label "sandboxer.build=$digest" --tag "$tag" --iidfile "$box/iid" --force-rm --file "$file"
	if [ -n "$target" ]; then decode "$target" && set -- "$@" --target "$decoded"; fi
	if [ -n "$network" ]; then decode "$network" && set -- "$@" --network "$decoded"; fi
	if [ -n "$platform" ]; then decode "$platform" && set -- "$@" --platform "$decoded"; fi
	[ "${shm:-0}" = 0 ] || set -- "$@" --shm-size "$shm"
	[ "${memory:-0}" = 0 ] || set -- "$@" --memory "$memory" --memory-swap "$memory"
	[ "${milli:-0}" = 0 ] || set -- "$@" --cpu-period 100000 --cpu-quota "$((milli * 100))"
	# Not above the daemon's own limit of open files.
	set -- "$@" --ulimit nofile=4096:4096
	commas=$IFS
	IFS=,
	set -f
	for item in $args; do decode "$item" && set -- "$@" --build-arg "$decoded"; done
	for item in $hosts; do decode "$item" && set -- "$@" --add-host "$decoded"; done
	set +f
	IFS=$commas
	image_left
	rm -f "$box/iid"
	log=$root/images/$digest.log
	: >"$log"
	watch_log "$log" "$root/images/$digest.ids" 7>&2 </dev/null >/dev/null 2>&1 &
	watcher=$!
	bound_steps "$log" "$root/images/$digest.ids" "${pids:-0}"
	bounded "$image_rest" env DOCKER_BUILDKIT=0 docker build "$@" -- "$place" >>"$log" 2>&1
	build_code=$?
	kill "$watcher" 2>/dev/null
	wait "$watcher" 2>/dev/null
	unbound_steps
	build_why=$(end_of 65536 <"$log" | grep -v -e '^DEPRECATED: The legacy builder' -e '^ *BuildKit is currently disabled' -e '^ *Install the buildx component' | sed 's/^\(.\{250\}.\{250\}\).*/\1…/' | end_of 4000)
}

# lost_layer succeeds if another build removed a layer that this one had found.
lost_layer() {
	[ "$build_code" != 0 ] || return 1
	case $build_why in
	*'No such image'* | *'unknown parent'* | *'layer does not exist'* | *'unable to find image "sha256:'* | *'failed to get digest sha256:'*) return 0 ;;
	esac
	return 1
}

# bound_steps LOG IDS PIDS gives each container of a build its process limit once docker has created it, which is before
# it starts unless the host is busy: the builder has no option for that. Only docker knows which containers exist, and
# only the log which of them belong to this build; a step cannot know another's id to write it there.
bound_steps() {
	steps= bounder=
	[ "$3" != 0 ] || return 0
	rm -f "$box/steps"
	mkfifo "$box/steps" || image_fail exhausted "the file $box/steps cannot be created" 'free some disk space on the host'
	while IFS= read -r step_id; do
		kill -0 "$$" 2>/dev/null || break
		bound_step "$1" "$2" "$3" &
	done <"$box/steps" >/dev/null 2>&1 6>&- 8>&- 9>&- &
	bounder=$!
	step_now=$(date +%s)
	docker events --since "$step_now" --until "$((step_now + image_rest + 60))" --filter type=container --filter event=create --format '{{.Actor.ID}}' \
		>"$box/steps" 2>/dev/null </dev/null 6>&- 8>&- 9>&- &
	steps=$!
}

bound_step() {
	short=${step_id%"${step_id#????????????}"} tries=0
	# A missing pipe means that the build has ended and the container is not one of its steps.
	while [ "$tries" -lt 120 ] && [ -p "$box/steps" ]; do
		if grep -qxF " ---> Running in $short" "$1" "$2" 2>/dev/null; then
			docker update --pids-limit "$3" "$step_id" </dev/null
			return
		fi
		tries=$((tries + 1)) step_rest=0.03
		[ "$tries" -lt 60 ] || step_rest=1 # a busy host prints late
		sleep "$step_rest" || sleep 1
	done
}

unbound_steps() {
	[ -n "$steps" ] || return 0
	kill "$steps" 2>/dev/null
	wait "$steps" 2>/dev/null
	kill "$bounder" 2>/dev/null
	wait "$bounder" 2>/dev/null
	rm -f "$box/steps"
	# Those that still look for their container see that and end.
	sleep 0.1 2>/dev/null || sleep 1
}

# watch_log LOG IDS tells the steps of a running build and keeps its log short; of the removed part it keeps the ids of
# layers. It tells them on descriptor 7.
watch_log() {
	trap 'kill -9 "$nap" 2>/dev/null; exit 0' TERM
	told=
	while kill -0 "$$" 2>/dev/null; do
		sleep 1 7>&- &
		nap=$!
		wait "$nap"
		said=$(end_of 65536 <"$1" | grep -a '^Step [0-9]*/[0-9]* : ' | tail -n 1 | cut -c 1-200)
		[ "$said" = "$told" ] || progress "image $build_subject|$said" 2>&7
		told=$said
		[ "$(($(wc -c <"$1")))" -gt 4194304 ] || continue
		grep -E '^ ---> (Running in )?[0-9a-f]+$' "$1" >>"$2"
		end_of 65536 <"$1" >"$2.tail"
		cat "$2.tail" >"$1"
		rm -f "$2.tail"
	done
}

# fail_build distinguishes a failed step from an unavailable base image.
fail_build() {
	case $build_code:$build_why in
	124:*) image_fail timeout "the image of the stack was not built in time (context $context)" 'raise config.create_timeout' "$build_why" ;;
	*'no space left on device'*) image_fail exhausted 'the host has no disk space left to build the image' 'free some disk space on the host' "$build_why" ;;
	*'annot connect to the Docker daemon'*) unlock_image && fail_docker 'the image could not be built' "$build_why" ;;
	*'returned a non-zero code'* | *'did not complete successfully'*)
		build_remedy='correct the Dockerfile'
		[ "$network" != none ] || build_remedy='correct the Dockerfile; builds have no network under network.default deny unless options build_network is "default"'
		image_fail invalid 'a step of the image build failed' "$build_remedy" "$build_why"
		;;
	*'dial tcp'* | *'failed to resolve source metadata'* | *'pull access denied'* | *'manifest unknown'* | *'manifest for '* | *'TLS handshake'* | *toomanyrequests* | *'failed to do request'* | *'Client.Timeout'*)
		judge_pull "$build_why"
		image_fail "$judged" 'the base image is not available' "$judged_remedy" "$build_why"
		;;
	esac
	image_fail invalid 'the image could not be built' 'correct the Dockerfile' "$build_why"
}
