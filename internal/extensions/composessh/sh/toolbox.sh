# The toolbox: an empty image that runs with the host's own programs mounted read-only. It brings the host's tools into a
# container's namespaces, with rights that the login itself lacks, and needs no pull.

# toolbox_image sets toolbox to the image's id and makes the image if there is none; false with why if that fails. It
# takes the host lock unless this script holds it.
toolbox_image() {
	toolbox_known && return 0
	[ -e "/proc/$$/fd/8" ] && toolbox_held=1 || {
		toolbox_held=
		lock_host
	}
	toolbox_known || {
		# An archive of nothing is two blocks of zeros.
		why=$(dd if=/dev/zero bs=1024 count=1 2>/dev/null | docker import --change 'LABEL sandboxer.toolbox=1' - "$toolbox_tag" 2>&1)
		toolbox_known || why="the toolbox image could not be made: $why"
	}
	[ -n "$toolbox_held" ] || unlock_host
	[ -n "$toolbox" ]
}

# Each root has its own image, so that its last sandbox does not remove another root's. No registry can serve its name, and
# it is run by its id, which docker never looks for elsewhere. An existing image of that name is ours only if it is empty
# and adds nothing to what runs in it: the host's programs would read variables such as LD_PRELOAD. With .Id instead of .ID,
# docker does not omit an empty field.
toolbox_known() {
	[ -n "${toolbox_tag-}" ] || toolbox_tag=sandboxer.invalid/toolbox:$(printf '%s' "$root" | cksum | cut -d ' ' -f 1)
	toolbox=$(docker image inspect -f '{{.ID}}{{"\n"}}{{index .Config.Labels "sandboxer.toolbox"}} {{len .Config.Labels}}{{with .Config.Env}} env{{end}}{{with .Config.Entrypoint}} entrypoint{{end}}{{with .Config.Cmd}} cmd{{end}}{{with .Config.Volumes}} volumes{{end}}{{with .Config.Healthcheck}} check{{end}}{{range .RootFS.Layers}}{{"\n"}}{{.}}{{end}}' "$toolbox_tag" 2>/dev/null </dev/null)
	# The one layer is the archive of nothing, by its digest.
	case $toolbox in
	*'
1 1
sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef' | *'
1 1') toolbox=${toolbox%%
*} ;;
	*) toolbox='' ;;
	esac
	[ -n "$toolbox" ]
}

# toolbox_places sets places to the mounts of the host's programs. It mounts the targets of links such as /bin -> usr/bin.
toolbox_places() {
	places=
	for place in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /gnu/store /run/current-system/sw \
		/etc/alternatives /etc/ld.so.cache /etc/ld-musl-x86_64.path /etc/ld-musl-aarch64.path; do
		[ -e "$place" ] && places="$places --mount type=bind,src=$place,dst=$place,readonly"
	done
}

# toolbox_run OPTION… -- COMMAND… runs a program of the host in a container, with options of docker run. Without --network
# it has no network, and it has only the capabilities that options add. 125 with why if there is no toolbox.
toolbox_run() {
	toolbox_image || return 125
	toolbox_places
	# toolbox_end recognizes it by this name, or another one that begins with sandboxer-.
	{ IFS=' ' read -r toolbox_now _ </proc/uptime; } 2>/dev/null
	toolbox_name="--name sandboxer-toolbox-${toolbox_tag##*:}-$$-${toolbox_now-}"
	toolbox_net='--network none' n=$# split=
	while [ "$n" -gt 0 ]; do
		word=$1 n=$((n - 1))
		shift
		if [ -z "$split" ]; then
			case $word in
			--network | --network=*) toolbox_net= ;;
			--name) toolbox_name= ;;
			--) word=$toolbox split=1 ;;
			esac
		fi
		set -- "$@" "$word"
	done
	# shellcheck disable=SC2086
	${toolbox_exec-} docker run --rm --pull never --no-healthcheck $toolbox_name $toolbox_net $places --label sandboxer.toolbox=run --label "sandboxer.toolbox-for=${id-}" \
		--user 0:0 --workdir / --entrypoint '' --read-only --log-driver none --pids-limit 512 \
		--cap-drop ALL --security-opt no-new-privileges --security-opt label=disable \
		--env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin "$@"
}

# network_open PID CONTAINER opens the network of the process as descriptor 5; false if this login may not, or if the
# process is not the container's. It may have ended and another have its number, so the network is opened first, and then
# the process is checked.
network_open() {
	[ "$(id -u)" = 0 ] && [ "${1:-0}" -gt 1 ] && command -v nsenter >/dev/null 2>&1 || return 1
	{ command exec 5<"/proc/$1/ns/net"; } 2>/dev/null || return 1
	grep -q -F -e "$2" "/proc/$1/cgroup" 2>/dev/null && nsenter --net=/proc/self/fd/5 true 2>/dev/null </dev/null && return 0
	exec 5<&-
	return 1
}

# toolbox_end ID ends what still runs of the toolbox for a sandbox.
toolbox_end() {
	list_named sandboxer ps -a --no-trunc --filter "label=sandboxer.toolbox-for=$1" --format '{{.ID}} {{.Names}}' || return 1
	# shellcheck disable=SC2086
	[ -z "$ours" ] || docker rm -f $ours >/dev/null 2>&1 </dev/null
}

# toolbox_remove_tree PATH is rm -rf, also for files that root or others in a container made. It follows no link. False with
# why if something is left.
toolbox_remove_tree() {
	[ -e "$1" ] || [ -h "$1" ] || return 0
	why=$(rm -rf -- "$1" 2>&1 </dev/null)
	[ -e "$1" ] || [ -h "$1" ] || return 0
	[ "$(id -u)" != 0 ] || return 1
	# The folder above is mounted, so rm gets only one name.
	tree=$(printf '%s' "${1%/*}/" | sed 's/"/""/g')
	why=$(toolbox_run --mount "type=bind,\"src=$tree\",dst=/tree" --cap-add DAC_OVERRIDE --cap-add FOWNER \
		-- rm -rf -- "/tree/${1##*/}" 2>&1 </dev/null)
	[ ! -e "$1" ] && [ ! -h "$1" ]
}

# toolbox_release removes the image; the caller holds the host lock and has seen that root has no sandbox.
toolbox_release() {
	toolbox_known || return 0
	docker image rm "$toolbox_tag" >/dev/null 2>&1 </dev/null
	return 0
}

# mark_kill MARK CONTAINER kills all processes that the mark started in the container, by the killer of kill.sh. Root sees them on the host; otherwise
# the toolbox looks from inside.
mark_kill() {
	if [ "$(id -u)" = 0 ]; then
		sh -c "$sbx_killer" sh "$1" </dev/null >/dev/null 2>&1
	else
		toolbox_run --pid "container:$2" --cap-add SYS_PTRACE --cap-add KILL -- sh -c "$sbx_killer" sh "$1" </dev/null >/dev/null 2>&1
	fi
}
