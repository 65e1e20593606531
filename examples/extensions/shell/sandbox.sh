#!/bin/sh
# A sandboxer extension in plain POSIX sh: each sandbox is one program that runs in the background until its deadline,
# such as a tunnel or an emulator. `settings.program` of the binding is its command line; without one it is `sleep 86400`.
#
# The request is one line of JSON without spaces between its tokens. A quote inside a text is written \", so `"id":"` can
# only be a key, and grep is enough to read the request here.
set -eu
PATH=/usr/local/bin:/usr/bin:/bin
export PATH
umask 077
IFS= read -r request

# text NAME: the first member of that name, a text without escapes. sandboxer's names come before texts that others choose.
text() { printf '%s\n' "$request" | grep -o "\"$1\":\"[^\"\\\\]*\"" | head -n 1 | cut -d'"' -f4; }
answer() {
	printf '{"contract":1,%s}\n' "$1"
	exit 0
}
refuse() { answer "\"error\":{\"kind\":\"$1\",\"message\":\"$2\"}"; }

[ "$(printf '%s\n' "$request" | sed -n 's/^{"contract":\([0-9]*\),.*/\1/p')" = 1 ] || refuse unavailable "this extension speaks contract 1"
base=$(text state_dir)/$(text account | tr / _)

# put FILE TEXT: all of it or nothing.
put() {
	printf '%s\n' "$2" >"$1.part"
	mv "$1.part" "$1"
}

# started PID: when a process started, in ticks; nothing once it has ended, even if its exit code was not fetched yet.
started() { sed -n 's/.*) //; /^Z/!p' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# running FOLDER: the process in its file still runs. A later process could reuse the PID, so the start time is kept too.
running() { read -r pid since <"$1/pid" && [ -n "$since" ] && [ "$(started "$pid")" = "$since" ]; }

# describe ID: one sandbox as JSON.
describe() {
	dir=$base/$1
	[ -f "$dir/pid" ] || {
		printf '{"phase":"absent"}'
		return
	}
	printf '{"ref":"%s","labels":%s,"started_at":"%s","deadline":"%s"' "$1" "$(cat "$dir/labels")" "$(cat "$dir/started")" "$(cat "$dir/deadline")"
	if running "$dir"; then
		printf ',"phase":"ready"}'
	elif [ "$(date +%s%3N)" -ge "$(cat "$dir/until")" ]; then
		printf ',"phase":"expired","reason":"its deadline has passed","ended_at":"%s"}' "$(cat "$dir/deadline")"
	else
		printf ',"phase":"failed","reason":"its program has ended"}'
	fi
}

provision() {
	id=$(text id) dir=$base/$(text id)
	mkdir -p "$dir"
	if [ ! -f "$dir/pid" ]; then # else the call is repeated: adopt the sandbox
		deadline=$(text deadline)
		until=$(($(date -d "$deadline" +%s%3N) + 1)) # milliseconds, never before the deadline
		left=$((until - $(date +%s%3N)))
		[ "$left" -gt 0 ] || refuse invalid "the deadline has passed"
		put "$dir/labels" "$(printf '%s\n' "$request" | grep -o '"labels":{[^}]*}' | head -n 1 | cut -d: -f2-)"
		put "$dir/deadline" "$deadline"
		put "$dir/until" "$until"
		put "$dir/started" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
		program=$(text program)
		# In its own session and without our streams, it outlives this run. timeout ends it at its deadline.
		setsid sh -c 'echo $$ >"$1"; shift; exec timeout -s KILL "$@"' sh "$dir/starting" "$((left / 1000)).$(printf %03d "$((left % 1000))")" sh -c "exec ${program:-sleep 86400}" \
			</dev/null >/dev/null 2>&1 &
		until [ -s "$dir/starting" ]; do sleep 0.01; done
		pid=$(cat "$dir/starting")
		put "$dir/pid" "$pid $(started "$pid")"
	fi
	answer "\"sandboxes\":[$(describe "$id")]"
}

# all IDS...: several sandboxes as JSON.
all() {
	list=
	for id in "$@"; do list="$list${list:+,}$(describe "$id")"; done
	answer "\"sandboxes\":[$list]"
}

status() {
	case $request in
	*'"sandboxes":['*) # shellcheck disable=SC2046 # ids have no spaces
		all $(printf '%s\n' "${request#*'"sandboxes":['}" | grep -o '"id":"[^"]*"' | cut -d'"' -f4) ;;
	esac
	set --
	for file in "$base"/*/pid; do
		[ ! -f "$file" ] || set -- "$@" "$(basename "$(dirname "$file")")"
	done
	all "$@"
}

find_it() {
	[ -f "$base/$(text id)/pid" ] || answer '"sandboxes":[]'
	all "$(text id)"
}

teardown() {
	dir=$base/$(text ref)
	[ -f "$dir/pid" ] || answer '"report":{"already_gone":true}'
	grep -qF "\"sandboxer.id\":\"$(text id)\"" "$dir/labels" || refuse conflict "the object belongs to another sandbox"
	from=$(cat "$dir/started")
	ended=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	if running "$dir"; then
		kill -s KILL -- "-$(cut -d' ' -f1 "$dir/pid")" # its whole session's group
		while running "$dir"; do sleep 0.01; done
	elif [ "$(date +%s%3N)" -ge "$(cat "$dir/until")" ]; then
		ended=$(cat "$dir/deadline")
	fi
	rm -rf "$dir"
	answer "\"report\":{\"removed\":[\"program\"],\"started_at\":\"$from\",\"ended_at\":\"$ended\"}"
}

case $1 in
provision | status | teardown) "$1" ;;
find) find_it ;;
*) refuse unavailable "this extension has no such verb" ;;
esac
