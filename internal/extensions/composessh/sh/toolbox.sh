# The toolbox: an empty image, run with the host's own programs mounted
# read-only. It brings the host's tools into a container's namespaces, with
# rights that the login itself lacks, and nothing has to be pulled for it.

# toolbox_image sets toolbox to the image's id and makes the image if there is
# none; false when that cannot be, with why. It takes the host lock unless this
# script holds it.
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

# Each root has an image of its own, so that the last sandbox of one takes it
# from no other. No registry can serve its name, and it is run by its id, which
# docker never looks for elsewhere. An image that is there under the name is ours
# only when it is empty and would add nothing to what is run in it: variables such
# as LD_PRELOAD would be read by the host's programs. With .Id in the place of .ID
# docker knows no field that is empty.
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

# toolbox_places sets places to the mounts of the host's programs. Links such as
# /bin -> usr/bin are mounted as what they lead to.
toolbox_places() {
	places=
	for place in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /gnu/store /run/current-system/sw \
		/etc/alternatives /etc/ld.so.cache /etc/ld-musl-x86_64.path /etc/ld-musl-aarch64.path; do
		[ -e "$place" ] && places="$places --mount type=bind,src=$place,dst=$place,readonly"
	done
}

# toolbox_run OPTION… -- COMMAND… runs a program of the host in a container: the
# options are those of docker run. Without --network it has no network, and it
# has no capability but those added. 125 with why when there is no toolbox.
toolbox_run() {
	toolbox_image || return 125
	toolbox_places
	# By this name, or another one that begins with sandboxer-, toolbox_end knows it.
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

# network_open PID CONTAINER opens the network of the process as descriptor 5;
# false where this login may not, or the process is not the container's. It may
# have ended, and another have its number: so the network is held first, and then
# the process is asked whose it is.
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

# toolbox_remove_tree PATH is rm -rf also for what root or others in a container
# made. It follows no link. False when something is left, with why.
toolbox_remove_tree() {
	[ -e "$1" ] || [ -h "$1" ] || return 0
	why=$(rm -rf -- "$1" 2>&1 </dev/null)
	[ -e "$1" ] || [ -h "$1" ] || return 0
	[ "$(id -u)" != 0 ] || return 1
	# The folder above is mounted, so that one name is all that rm is given.
	tree=$(printf '%s' "${1%/*}/" | sed 's/"/""/g')
	why=$(toolbox_run --mount "type=bind,\"src=$tree\",dst=/tree" --cap-add DAC_OVERRIDE --cap-add FOWNER \
		-- rm -rf -- "/tree/${1##*/}" 2>&1 </dev/null)
	[ ! -e "$1" ] && [ ! -h "$1" ]
}

# toolbox_release removes the image; the caller holds the host lock and has seen
# that no sandbox is left in root.
toolbox_release() {
	toolbox_known || return 0
	docker image rm "$toolbox_tag" >/dev/null 2>&1 </dev/null
	return 0
}

# mark_killer is a script for the host's sh, to be run where the container's
# processes can be seen: it kills what carries the mark $1 in its environment,
# the children and the sessions of that, until nothing is left. Whoever drops the
# mark is still somebody's child; the processes of others never have it.
# shellcheck disable=SC2016
mark_killer='
want=SANDBOXER_EXEC=$1 round=0
marked() {
	if [ -n "$zero" ]; then
		( cd /proc && grep -lzxF "$want" [0-9]*/environ 2>/dev/null )
	else
		for f in /proc/[0-9]*/environ; do
			tr "\000" "\n" <"$f" 2>/dev/null | grep -qxF "$want" && echo "${f#/proc/}"
		done
	fi
}
zero=; printf "a\000b\000" | grep -qzx b 2>/dev/null && zero=1
while :; do
	list=" "
	for f in $(marked); do list="$list${f%%/*} "; done
	sessions=" " grown=1
	while [ -n "$grown" ]; do
		grown=
		for s in /proc/[0-9]*/stat; do
			read -r line 2>/dev/null <"$s" || continue
			p=${s#/proc/} p=${p%/stat}
			set -- ${line##*) }
			[ "$1" != Z ] || continue
			case $list in *" $p "*)
				case $sessions in *" $4 "*) ;; *) [ "$4" -le 1 ] || { sessions="$sessions$4 " grown=1; } ;; esac
				continue ;;
			esac
			case $list in *" $2 "*) list="$list$p " grown=1; continue ;; esac
			case $sessions in *" $4 "*) list="$list$p " grown=1 ;; esac
		done
	done
	[ "$list" != " " ] || exit 0
	kill -9 $list 2>/dev/null
	round=$((round + 1))
	[ "$round" -lt 40 ] || exit 1
	[ "$round" -lt 3 ] || sleep 0.1 2>/dev/null || sleep 1
done
'

# mark_kill MARK CONTAINER kills all that the mark started in the container. As root the
# host's own view is enough; else the toolbox looks from inside.
mark_kill() {
	if [ "$(id -u)" = 0 ]; then
		sh -c "$mark_killer" sh "$1" </dev/null >/dev/null 2>&1
	else
		toolbox_run --pid "container:$2" --cap-add SYS_PTRACE --cap-add KILL -- sh -c "$mark_killer" sh "$1" </dev/null >/dev/null 2>&1
	fi
}
