# The snapshots of a root, beside its sandboxes: root/snapshots has a folder for each, by its id, with
#
#	data       what parts.sh makes
#	manifest   id, account, sandbox, kind, name, created, size, digest
#	lock       held by descriptor 7 while somebody makes, reads or removes it
#
# One in the making is .new-ID, one in removal .gone-ID, both renamed in one step.

# kept_sweep removes what killed scripts left of snapshots. A half that somebody works on is locked; one is made with the
# host lock, which the caller holds.
kept_sweep() {
	glob_on
	for half in "$root/snapshots"/.new-* "$root/snapshots"/.gone-*; do
		[ -d "$half" ] || continue
		[ ! -e "$half/lock" ] || flock -n "$half/lock" true 2>/dev/null </dev/null || continue
		rm -rf -- "$half"
	done
}

# kept_halves reports whether there are any.
kept_halves() {
	glob_on
	for half in "$root/snapshots"/.new-* "$root/snapshots"/.gone-*; do
		[ ! -d "$half" ] || return 0
	done
	return 1
}

kept_clean() {
	kept_halves || return 0
	lock_host
	kept_sweep
	unlock_host
}

# kept_lock WAY FOLDER takes the lock of a folder: -s to read, -x to make or remove. 1 = busy, 2 = it is gone.
kept_lock() {
	{ command exec 7<"$2/lock"; } 2>/dev/null || return 2
	flock "$1" -w "$lock_wait" 7 || {
		exec 7>&-
		return 1
	}
	[ "$2/lock" -ef /proc/self/fd/7 ] || {
		exec 7>&-
		return 2
	}
}

# kept_take WAY takes the lock of the snapshot of the id in snapshot, once nobody makes it any more; false if there is none.
kept_take() {
	at=$root/snapshots/$snapshot
	kept_lock -s "$root/snapshots/.new-$snapshot"
	case $? in
	0) exec 7>&- ;;
	1) fail conflict "the snapshot $snapshot is being made" 'wait until it has ended' ;;
	esac
	kept_lock "$1" "$at"
	case $? in
	1) fail conflict "the snapshot $snapshot is in use" 'wait until its restore has ended' ;;
	2) return 1 ;;
	esac
	get_from "$at/manifest" id || fail internal "the record of the snapshot $snapshot in $at cannot be read" 'look at the folder on the host'
	[ "$value" = "$snapshot" ] || fail conflict "the folder $at holds the snapshot $value, not $snapshot" 'nothing was changed'
	get_from "$at/manifest" account
	[ "$value" = "$account" ] || fail conflict "the snapshot $snapshot belongs to the account $value"
}

# kept_data fails unless the data of the snapshot in at is the file that was made: what took its place may have no end.
kept_data() {
	get_from "$at/manifest" size
	if [ -f "$at/data" ] && [ ! -h "$at/data" ]; then
		# shellcheck disable=SC2046
		set -- $(ls -ln -- "$at/data" 2>/dev/null </dev/null)
		[ "${5-}" != "$value" ] || return 0
		kept_damaged "it has ${5-no} bytes, not $value"
	fi
	kept_damaged 'its data is no file'
}

kept_damaged() { fail invalid "the snapshot $snapshot is damaged: $1" 'restore from another snapshot; this one cannot be repaired'; }

kept_missing() { fail not_found "the snapshot $snapshot is not on the host" "look for it in $root/snapshots there"; }

# answer_kept answers with the snapshot in at.
answer_kept() {
	kept_said=
	for key in id sandbox kind created size digest; do
		get_from "$at/manifest" "$key"
		kept_said="$kept_said,\"$key\":$(json_string "$value")"
	done
	answer "{\"found\":true,\"snapshot\":{${kept_said#,}}}"
}

# leave_kept removes the folder of all snapshots if there is none, and the root with it if that has no sandbox.
leave_kept() {
	rmdir "$root/snapshots" 2>/dev/null || return 0
	lock_host
	leave_root
	unlock_host
}

# digest_of FILE sets digest. Where the processor has instructions for it, openssl takes a third of sha256sum's time.
digest_of() {
	digest=$(openssl dgst -sha256 -r <"$1" 2>/dev/null) && is_sha256 "${digest%% *}" ||
		{ digest=$(sha256sum <"$1" 2>/dev/null) && is_sha256 "${digest%% *}"; } ||
		fail unsupported 'the host has no sha256sum that works' 'install coreutils or busybox on the host'
	digest=sha256:${digest%% *}
}

is_sha256() {
	case $1 in *[!0-9a-f]*) return 1 ;; esac
	[ "${#1}" = 64 ]
}
