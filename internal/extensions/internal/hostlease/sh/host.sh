# The beginning of every script on a host. POSIX sh; runs on dash, busybox ash and bash. Variables from the caller: root
# ('' = ~/.sandboxer), account, and those of the operation; it also brings answer, progress and json_string. A function
# returns values in variables with its name or the names given, because a $(…) is a process.

umask 077
LC_ALL=C
export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin
export PATH
# A caller that went away must not end a script in the middle of its work.
trap '' PIPE HUP

# blanks are the characters that separate words; glob_off and glob_on set whether split words count as patterns.
blanks=$IFS
glob_off() { set -f; }
glob_on() { set +f; }

# ---- answers

# fail KIND MESSAGE [REMEDY [DETAIL]] answers with an error and ends the script. KIND is one of the contract's, or one that
# the caller classifies by the detail. Undo belongs into on_fail.
fail() {
	trap - EXIT
	on_fail "$@"
	answer "{\"failure\":{\"kind\":\"$1\",\"message\":$(json_string "$2"),\"remedy\":$(json_string "${3-}"),\"detail\":$(json_string "${4-}"),\"health\":$(json_string "${health-}"),\"made\":${made:-false}}}"
	exit 0
}

# quietly FUNCTION… runs in a subshell where a failure is only a status.
quietly() {
	entries_of= # it may write what this shell remembers
	(
		fail() { exit 1; }
		"$@" >/dev/null 2>&1
	)
}

# on_fail KIND MESSAGE … runs before a failure is answered; operations redefine it.
on_fail() { :; }

# end_of BYTES prints the last whole lines of its input, at most so many bytes; a line "…" stands for what is left out. Of
# a longer last line it prints the end.
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

# warn TEXT adds a line to the warnings of the answer.
warnings=
warn() {
	warnings="$warnings$1
"
}

# step NAME reports the progress to the caller.
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

# use_root makes root absolute, and fails if somebody else could change or read its contents. It does not make the folder.
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

# lock_host takes the host lock, for milliseconds: for choices that other scripts make too. It makes the root, again if
# that was removed meanwhile.
lock_host() {
	while :; do
		[ -d "$root" ] || mkdir -p -m 0700 "$root" 2>/dev/null || [ -d "$root" ] || fail unavailable "the folder $root cannot be created" "check the disk, and the rights of $(id -un) there"
		# If there was none at first, somebody else may have been faster.
		[ -n "${root_seen-}" ] || check_root
		{ command exec 8>>"$root/lock"; } 2>/dev/null || { [ -d "$root" ] || continue; fail unavailable "the file $root/lock cannot be written" 'check the disk, and the rights of the login there'; }
		flock -w "${lock_wait:-60}" 8 || fail unavailable 'another operation has been holding the host lock for too long' "check who holds $root/lock, for instance with fuser"
		[ "$root/lock" -ef /proc/self/fd/8 ] && return 0
	done
}

unlock_host() { exec 8>&-; }

# lock_sandbox SECONDS takes the lock of box, whose folder exists, and records this script as its holder. 1 = busy, with
# holder_pid and holder_op set; 2 = the folder is gone.
lock_sandbox() {
	# Not created here: a new file would prevent the removal of its folder.
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
	# The last holder, if it did not release the lock in order.
	former_op=
	[ ! -f "$box/holder" ] || {
		read_holder
		former_op=$holder_op
	}
	held_box=$box entries_of=
	write_holder # on a full disk nobody can tell who holds it, and it is held all the same
	return 0
}

unlock_sandbox() {
	held_box=
	{ printf '' >"$box/holder"; } 2>/dev/null
	exec 9>&-
}

# write_holder records who works on box, so that a teardown can end it: pid, start time, boot and process group, and the
# operation.
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

# read_stat PID sets stat_start and stat_group; false if no such process lives.
read_stat() {
	stat_start='' stat_group=''
	{ IFS= read -r stat_line <"/proc/$1/stat"; } 2>/dev/null || return 1
	# The name in parentheses may have spaces and parentheses; what follows it may not.
	set -f
	# shellcheck disable=SC2086
	set -- ${stat_line##*) }
	set +f
	[ "$1" != Z ] || return 1
	stat_group=$3
	shift 19
	stat_start=$1
}

# holder_lives reports whether the holder last read is still the same process.
holder_lives() {
	[ -n "$holder_pid" ] || return 1
	read_clock
	[ "$holder_boot" = "$boot" ] && read_stat "$holder_pid" && [ "$stat_start" = "$holder_start" ] && [ "$stat_group" = "$holder_group" ]
}

# ---- manifest: one line KEY=VALUE each; the last one of a key counts

# manifest_get KEY sets value; false if the key or the manifest is missing. Under the sandbox's lock it reads the file once:
# nobody else writes it then.
manifest_get() {
	manifest_read && entries_get "$1"
}

manifest_read() {
	[ "${held_box-}" = "$box" ] && [ "${entries_of-}" = "$box/manifest" ] && [ -f "$box/manifest" ] || entries_read "$box/manifest"
}

# get_from FILE KEY is manifest_get on any file of that form.
get_from() {
	entries_read "$1" && entries_get "$2"
}

# entries_read FILE sets entries to the lines of such a file; false if there is none. A shell reads files by single bytes:
# a key looked up in memory costs a twentieth.
entries_read() {
	entries='' entries_of='' value=''
	[ -f "$1" ] || return 1
	while IFS= read -r line; do
		entries="$entries$line
"
	done <"$1"
	entries_of=$1
}

# entries_get KEY sets value to that of entries; false if it has no such key.
entries_get() {
	value='' found=1
	entries_split
	for line in $entries; do
		case $line in "$1="*) value=${line#*=} found=0 ;; esac
	done
	entries_joined
	return "$found"
}

# entries_split lets words be lines; entries_joined, what they were before.
entries_split() {
	entries_blanks=$IFS entries_glob=glob_on
	case $- in *f*) entries_glob=: ;; esac
	glob_off
	IFS='
'
}

entries_joined() {
	IFS=$entries_blanks
	"$entries_glob"
}

# manifest_put KEY VALUE … replaces these keys in one step. A value is one line.
manifest_put() {
	put='' put_keys=' ' put_key=1
	for arg; do
		[ "$put_key" = 0 ] || put_keys="$put_keys$arg "
		put_key=$((1 - put_key))
	done
	if manifest_read; then
		entries_split
		for line in $entries; do
			case $put_keys in
			*" ${line%%=*} "*) ;;
			*) put="$put$line
" ;;
			esac
		done
		entries_joined
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
	printf '%s' "$put" >"$box/manifest.$$" && mv -f "$box/manifest.$$" "$box/manifest" && {
		entries=$put entries_of=$box/manifest
		return 0
	}
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

# ---- limits

# bounded SECONDS COMMAND… runs a command at most that long: 124 = it was ended. Its watcher holds no lock, and ends with
# it even if this script is killed.
bounded() {
	bound=$1
	shift
	[ ! -e "$box/late" ] || rm -f "$box/late"
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
