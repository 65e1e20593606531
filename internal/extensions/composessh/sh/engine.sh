# What a host must have to run a stack.

# check_engine asks for the versions of the engine and of Compose, once per boot
# and start of the engine, as far as that can be told from here.
check_engine() {
	daemon=''
	{ IFS= read -r daemon </run/docker.pid; } 2>/dev/null
	read_clock
	if [ -n "$daemon" ] && [ -f "$root/engine" ]; then
		IFS=' ' read -r checked_boot checked_daemon engine engine_id <"$root/engine"
		[ "$checked_boot $checked_daemon" != "$boot $daemon" ] || [ -z "$engine_id" ] || {
			engine_major=${engine%%.*}
			return 0
		}
	fi
	engine=$(docker version --format '{{.Server.Version}}' 2>/dev/null </dev/null) || fail_docker 'Docker does not answer' "$(docker version 2>&1 >/dev/null </dev/null)"
	engine_major=${engine%%.*}
	case $engine_major in '' | *[!0-9]*) engine_major=0 ;; esac
	[ "$engine_major" -ge 20 ] || fail unsupported "the host has Docker Engine $engine; 20.10 is the oldest that works" 'install a newer Docker Engine on the host: https://docs.docker.com/engine/install/'
	compose_version=$(docker compose version --short 2>&1 </dev/null) ||
		fail unsupported 'the host has no Docker Compose v2 (docker compose)' 'install the Compose plugin on the host, version 2.0 or newer: https://docs.docker.com/compose/install/linux/' "$compose_version"
	case ${compose_version#v} in
	0.* | 1.*) fail unsupported "the host has Docker Compose $compose_version; 2.0 is the oldest that works" 'install the Compose plugin on the host, version 2.0 or newer: https://docs.docker.com/compose/install/linux/' ;;
	esac
	read_engine
	[ -z "$daemon" ] || { printf '%s %s %s %s\n' "$boot" "$daemon" "$engine" "$engine_id" >"$root/engine.$$" && mv -f "$root/engine.$$" "$root/engine"; } 2>/dev/null
}
