# What every script on a host begins with. POSIX sh; runs on dash, busybox ash
# and bash. Variables that come from the caller: root ('' = ~/.sandboxer),
# account, and those of the operation. What a function leaves for its caller is
# in a variable named after it, because a $(…) is a process.

umask 077
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin
export PATH
# A caller that went away must not end a script in the middle of its work.
trap '' PIPE HUP

# blanks is what words are split at; glob_off and glob_on say whether words that
# were split are taken for patterns.
blanks=$IFS
glob_off() { set -f; }
glob_on() { set +f; }

# ---- answers

# fail KIND MESSAGE [REMEDY [DETAIL]] answers with an error and ends the script:
# KIND is one of the contract's, or docker, service_failed, service_late, which
# the caller classifies by the detail. What must be undone first belongs into on_fail.
fail() {
	trap - EXIT
	on_fail "$@"
	answer "{\"failure\":{\"kind\":\"$1\",\"message\":$(json_string "$2"),\"remedy\":$(json_string "${3-}"),\"detail\":$(json_string "${4-}"),\"health\":$(json_string "${health-}"),\"made\":${made:-false}}}"
	exit 0
}

# quietly FUNCTION… runs in a subshell where a failure is only a status.
quietly() (
	fail() { exit 1; }
	"$@" >/dev/null 2>&1
)

# on_fail KIND MESSAGE … runs before a failure is answered; operations redefine it.
on_fail() { :; }

# fail_docker WHAT TEXT fails with what a docker command printed, which the
# caller's side classifies: kind "docker".
fail_docker() { fail docker "$1" '' "$2"; }

# end_of BYTES prints the last lines of what it reads, at most so many bytes of them
# and none in part; where something is left out, a line "…" stands for it. The end
# of a last line that is longer is all there is.
end_of() {
	ended=$(tail -c "$(($1 + 1))" && echo .)
	ended=${ended%.}
	if [ "${#ended}" -gt "$1" ]; then
		case $ended in
		*'
'?*) ended="…
${ended#*"
"}" ;;
		*) ended="… ${ended#?}" ;;
		esac
	fi
	printf '%s' "$ended"
}

# warn TEXT adds a line to what the answer reports beside its result.
warnings=
warn() {
	warnings="$warnings$1
"
}

# step NAME tells the caller how far it is.
step() { progress "step $1"; }

# ---- clock: hundredths of a second since boot, which no step of the wall clock moves

# read_clock sets uptime (hundredths of a second) and boot (the boot's id).
read_clock() {
	uptime=0 boot=unknown
	{ IFS=' ' read -r uptime _ </proc/uptime; } 2>/dev/null
	case $uptime in
	*.??) uptime=${uptime%.??}${uptime##*.} ;;
	*.?) uptime=${uptime%.?}${uptime##*.}0 ;;
	*) uptime=${uptime%%.*}00 ;;
	esac
	while :; do case $uptime in 0?*) uptime=${uptime#0} ;; *) break ;; esac; done
	{ IFS= read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null
}

# ---- places

# use_root makes root absolute, and fails where somebody else could change or read
# what is in it. It does not make the folder.
use_root() {
	case $root in
	'') root=$HOME/.sandboxer ;;
	'~/'*) root=$HOME/${root#'~/'} ;;
	esac
	case $root in
	/*) ;;
	*) fail invalid "the host root $root is not an absolute path" 'set config.root of the binding, or HOME for the login' ;;
	esac
	while :; do case $root in ?*/) root=${root%/} ;; *) break ;; esac; done
	check_root
}

# use_box ID sets id and box, the sandbox's folder.
use_box() {
	id=$1 box=$root/$1
}

# ---- locks: descriptor 8 holds the host's, 9 the sandbox's, 7 the reaper's

# lock_host takes the host lock: for choosing what others could choose too, for
# milliseconds. It makes the root. A root that was removed meanwhile is made anew.
lock_host() {
	while :; do
		mkdir -p -m 0700 "$root" 2>/dev/null || [ -d "$root" ] || fail unavailable "the folder $root cannot be made" "check the disk, and the rights of $(id -un) there"
		# Where there was none at first, somebody else may have been quicker.
		[ -n "${root_seen-}" ] || check_root
		{ command exec 8>>"$root/lock"; } 2>/dev/null || { [ -d "$root" ] || continue; fail unavailable "the file $root/lock cannot be written" 'check the disk, and the rights of the login there'; }
		flock -w "${lock_wait:-60}" 8 || fail unavailable 'another operation has been holding the host lock for too long' "look at who holds $root/lock, for instance with fuser"
		[ "$root/lock" -ef /proc/self/fd/8 ] && return 0
	done
}

unlock_host() { exec 8>&-; }

# lock_sandbox SECONDS takes the lock of box, whose folder exists, and records
# this script as its holder. 1 = busy, with holder_pid and holder_op set; 2 = the folder is gone.
lock_sandbox() {
	# Not made here: a file made anew would stand in the way of its folder's removal.
	{ command exec 9<"$box/lock"; } 2>/dev/null || return 2
	if [ "$1" -gt 0 ]; then
		flock -w "$1" 9
	else
		flock -n 9
	fi || {
		exec 9>&-
		read_holder
		return 1
	}
	[ "$box/lock" -ef /proc/self/fd/9 ] || {
		exec 9>&-
		return 2
	}
	# Who held it last and did not let go of it in order.
	former_op=
	[ ! -f "$box/holder" ] || {
		read_holder
		former_op=$holder_op
	}
	write_holder # on a full disk nobody can tell who holds it, and it is held all the same
	return 0
}

unlock_sandbox() {
	rm -f "$box/holder"
	exec 9>&-
}

# write_holder notes who works on box, so that a teardown can end it: pid,
# start time, boot and process group, and the operation.
write_holder() {
	read_clock
	read_stat $$
	printf '%s %s %s %s %s\n' "$$" "$stat_start" "$boot" "$stat_group" "${op:-?}" >"$box/holder"
}

# read_holder sets holder_pid, holder_start, holder_boot, holder_group, holder_op.
read_holder() {
	holder_pid='' holder_start='' holder_boot='' holder_group='' holder_op=''
	{ IFS=' ' read -r holder_pid holder_start holder_boot holder_group holder_op <"$box/holder"; } 2>/dev/null
}

# read_stat PID sets stat_start and stat_group; false when no such process lives.
read_stat() {
	stat_start='' stat_group=''
	{ IFS= read -r stat_line <"/proc/$1/stat"; } 2>/dev/null || return 1
	# The name in brackets may hold spaces and brackets; what follows it may not.
	set -f
	# shellcheck disable=SC2086
	set -- ${stat_line##*) }
	set +f
	[ "$1" != Z ] || return 1
	stat_group=$3
	shift 19
	stat_start=$1
}

# holder_lives reports whether the holder read last is still that very process.
holder_lives() {
	[ -n "$holder_pid" ] || return 1
	read_clock
	[ "$holder_boot" = "$boot" ] && read_stat "$holder_pid" && [ "$stat_start" = "$holder_start" ] && [ "$stat_group" = "$holder_group" ]
}

# ---- manifest: lines KEY=VALUE, the last one of a key counts, one line each

# manifest_get KEY sets value; false when the key or the manifest is missing.
manifest_get() { get_from "$box/manifest" "$1"; }

# get_from FILE KEY is manifest_get on any file of that form.
get_from() {
	value='' found=1
	[ -f "$1" ] || return 1
	while IFS= read -r line; do
		case $line in
		"$2="*) value=${line#*=} found=0 ;;
		esac
	done <"$1"
	return "$found"
}

# manifest_put KEY VALUE … replaces these keys in one step. A value is one line.
manifest_put() {
	put=
	if [ -f "$box/manifest" ]; then
		while IFS= read -r line; do
			keep=1 i=1
			for arg; do
				[ "$i" = 1 ] && [ "${line%%=*}" = "$arg" ] && keep=0
				i=$((1 - i))
			done
			[ "$keep" = 0 ] || put="$put$line
"
		done <"$box/manifest"
	fi
	while [ $# -gt 1 ]; do
		case $2 in
		*'
'*) put="$put$1=$(printf '%s' "$2" | tr '\n' ' ')
" ;;
		*) put="$put$1=$2
" ;;
		esac
		shift 2
	done
	# One write, whose failure shows: a full disk leaves the former manifest.
	printf '%s' "$put" >"$box/manifest.$$" && mv -f "$box/manifest.$$" "$box/manifest" && return 0
	rm -f "$box/manifest.$$"
	fail exhausted "the file $box/manifest cannot be written" 'free some disk space on the host'
}

# manifest_add KEY WORD adds a word to a list, once.
manifest_add() {
	manifest_get "$1"
	case " $value " in
	*" $2 "*) ;;
	*) manifest_put "$1" "${value:+$value }$2" ;;
	esac
}

# ---- docker

# need_tools fails unless what the scripts use is there.
need_tools() {
	[ -d /proc/self ] || fail unsupported "the host runs $(uname -s), not Linux" 'choose a Linux host'
	for tool in docker flock setsid tar; do
		command -v "$tool" >/dev/null 2>&1 && continue
		case $tool in
		docker) fail unsupported 'the host has no docker command' 'install Docker Engine on the host (https://docs.docker.com/engine/install/) and let the login use it' ;;
		flock | setsid) fail unsupported "the host has no $tool command" 'install util-linux on the host' ;;
		*) fail unsupported "the host has no $tool command" "install $tool on the host" ;;
		esac
	done
}

# bounded SECONDS COMMAND… runs a command at most that long: 124 = it was ended.
# What watches it holds no lock, and ends with it even if this script is killed.
bounded() {
	bound=$1
	shift
	rm -f "$box/late"
	"$@" </dev/null &
	job=$!
	(
		trap 'kill -9 "$nap" 2>/dev/null; exit 0' TERM
		nap=''
		while [ "$bound" -gt 0 ] && kill -0 "$job" 2>/dev/null; do
			[ "$bound" -gt 5 ] && step=5 || step=$bound
			bound=$((bound - step))
			sleep "$step" &
			nap=$!
			wait "$nap"
		done
		kill -0 "$job" 2>/dev/null || exit 0
		printf '' >"$box/late"
		kill -TERM "$job"
		sleep 5 &
		nap=$!
		wait "$nap"
		kill -KILL "$job" 2>/dev/null
	) </dev/null >/dev/null 2>&1 8>&- 9>&- &
	dog=$!
	wait "$job"
	code=$?
	kill -TERM "$dog" 2>/dev/null
	wait "$dog" 2>/dev/null
	[ ! -e "$box/late" ] || code=124
	return "$code"
}
