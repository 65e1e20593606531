# Secrets as files: one folder per sandbox in the host's memory, /dev/shm, which nobody else can enter, with one file per
# secret, readable by everybody: containers get only the files. Its name contains login, root and sandbox, so it can be
# found without a record.
#
# If the login is not root, the toolbox makes it, as docker's root: logind removes a login's files from /dev/shm when its
# last session ends.

memory_place=/dev/shm

# memory_found reports whether that is memory, not a folder on a disk.
memory_found() {
	memory_type=
	while IFS=' ' read -r _ memory_mount memory_kind _; do
		[ "$memory_mount" != "$memory_place" ] || memory_type=$memory_kind
	done 2>/dev/null </proc/mounts
	case $memory_type in tmpfs | ramfs) return 0 ;; esac
	return 1
}

# memory_own sets memory_prefix, the beginning of the names of this login's and root's folders. The id of a sandbox
# follows.
memory_own() {
	[ -z "${memory_prefix-}" ] || return 0
	memory_prefix=$memory_place/sandboxer-$(id -u)-$(printf '%s' "$root" | cksum)
	memory_prefix=${memory_prefix%% *}-
}

# The job there: put runs a shell text that writes files, drop removes a folder of our own and no other. 3 = the folder
# cannot be made.
# shellcheck disable=SC2016
memory_job='
case $1 in
put)
	umask 077
	mkdir -- "$2" 2>/dev/null && cd -- "$2" || exit 3
	umask 0222
	eval "$(cat)" ;;
drop)
	[ ! -h "$2" ] && [ -O "$2" ] || exit 0
	rm -rf -- "$2" ;;
esac'

memory_run() {
	if [ "$(id -u)" = 0 ]; then
		sh -c "$memory_job" sh "$@"
	else
		toolbox_run --interactive --mount "type=bind,src=$memory_place,dst=$memory_place" -- sh -c "$memory_job" sh "$@"
	fi 2>/dev/null
}

# memory_put runs the text secret_files, if there is any, which writes the files, and exports the folder as SBX_SECRETS.
# The values are in no argument, environment or message.
memory_put() {
	[ -n "$secret_files" ] || return 0
	memory_found || fail unsupported "the host has no memory file system at $memory_place, so secrets cannot be files there" "mount a tmpfs at $memory_place on the host, or set secrets_as: env"
	[ "$(id -u)" = 0 ] || toolbox_image || fail_docker 'the files of secrets cannot be created' "$why"
	memory_sweep
	memory_own
	SBX_SECRETS=$memory_prefix$id
	export SBX_SECRETS
	printf '%s\n' "$secret_files" | memory_run put "$SBX_SECRETS"
	case $? in
	0) step secrets ;;
	125) fail unavailable "the files of secrets cannot be made in $memory_place: docker runs no container with it" "look on the host: docker run --rm -v $memory_place:$memory_place …" ;;
	3) fail unavailable "the folder $SBX_SECRETS for the files of secrets cannot be created" 'check whether another user created it, and remove it' ;;
	*) fail exhausted "the files of secrets cannot be written to $SBX_SECRETS" "make room in the memory of the host: df $memory_place" ;;
	esac
}

# memory_drop ID removes the folder of a sandbox, if it has one.
memory_drop() {
	for memory_at in "$memory_place"/sandboxer-*-"$1"; do
		[ -d "$memory_at" ] || continue
		memory_own
		[ "$memory_at" = "$memory_prefix$1" ] || continue
		memory_run drop "$memory_at" </dev/null ||
			fail unavailable "the files of secrets in $memory_at could not be removed" "remove them on the host: sudo rm -rf $memory_at"
	done
}

# memory_forgotten COMMAND… calls it with the id of each folder whose sandbox is no longer in root.
memory_forgotten() {
	for memory_entry in "$memory_place"/sandboxer-*-sbx-*; do
		[ -d "$memory_entry" ] || continue
		memory_own
		case $memory_entry in "$memory_prefix"*) ;; *) continue ;; esac
		[ -d "$root/${memory_entry#"$memory_prefix"}" ] || "$@" "${memory_entry#"$memory_prefix"}"
	done
}

# memory_sweep removes those.
memory_sweep() { memory_forgotten quietly memory_drop; }
