# Operation: keep a snapshot of a sandbox. Variables: snapshot (its id), name, kind, live, created.

use_root
use_box "$id"
read_clock
started=$uptime op=snapshot
need_tools

# made_already answers if there is one of that id; it waits for a script that makes it.
made_already() {
	kept_take -s || return 0
	get_from "$at/manifest" sandbox
	[ "$value" = "$id" ] || fail conflict "$snapshot is a snapshot of $value"
	[ ! -e "/proc/$$/fd/9" ] || unlock_sandbox
	answer_kept
	exit 0
}

kept_clean
made_already
take_ready
made_already
shelf=$root/snapshots/.new-$snapshot
drop_half() {
	on_fail() { :; }
	rm -rf -- "$shelf"
	exec 7>&-
	quietly leave_kept
}
on_fail() {
	drop_half
	quietly let_go
	unlock_sandbox
}
lock_host
kept_sweep
mkdir -p "$root/snapshots" && mkdir "$shelf" && printf '' >"$shelf/lock" && kept_lock -x "$shelf" || {
	unlock_host
	fail exhausted "the folder $shelf cannot be made" 'free some disk space on the host'
}
unlock_host
step begun
parts_take "$shelf" "$kind" "$live"
unlock_sandbox
on_fail() { drop_half; }
digest_of "$shelf/data"
printf '%s=%s\n' id "$snapshot" account "$account" sandbox "$id" kind "$kind" name "$name" created "$created" \
	size "$(($(wc -c <"$shelf/data")))" digest "$digest" >"$shelf/manifest" || parts_full
sync "$shelf/data" "$shelf/manifest" 2>/dev/null
step staged
mv -- "$shelf" "$at" || parts_full
step kept
exec 7>&-
answer_kept
