# What a host needs to run a stack.

# check_engine asks for the versions of the engine and of Compose, once per boot and start of the engine. If it cannot
# detect a restart, an answer counts for ten seconds. When many scripts begin at once on a host, one asks for all. It
# sets engine, engine_id and compose_plugin, the program that docker runs for "docker compose", or '' if docker had
# better choose, and noted, which the caller may keep and pass back as engine_seen: a host without sandboxes keeps nothing
# of ours.
check_engine() {
	engine_started
	noted=${engine_seen-}
	engine_counts "$noted" || engine_known || {
		{ command exec 5>>"$root/engine.lock"; } 2>/dev/null && flock -w 30 5
		engine_known || {
			ask_engine
			judge_engine
			noted=$(engine_note)
			{ printf '%s\n' "$noted" >"$root/engine.$$" && mv -f "$root/engine.$$" "$root/engine"; } 2>/dev/null
		}
		exec 5>&-
	}
}

# engine_started sets daemon to the process of the engine, '' if its file is elsewhere.
engine_started() {
	daemon=''
	{ IFS= read -r daemon </run/docker.pid; } 2>/dev/null
}

# engine_note prints a judged answer and what it holds for.
engine_note() { printf '%s %s %s %s %s %s\n' "$boot" "${daemon:--}" "$uptime" "$engine" "${engine_id:--}" "$compose_plugin"; }

# engine_known takes the earlier answer; false if that no longer counts.
engine_known() {
	noted=
	{ IFS= read -r noted <"$root/engine"; } 2>/dev/null
	engine_counts "$noted"
}

engine_counts() {
	read_clock
	IFS=' ' read -r known_boot known_daemon known_at engine engine_id compose_plugin <<-END
		$1
	END
	[ "$known_boot" = "$boot" ] && [ -n "$engine_id" ] && [ "$engine_id" != - ] || return 1
	[ -z "$daemon" ] || { [ "$known_daemon" = "$daemon" ] && return 0; }
	[ "$known_daemon" = "${daemon:--}" ] && [ "$known_at" -le "$uptime" ] && [ "$uptime" -lt "$((known_at + 1000))" ]
}

# The answer to one question: versions, id and plugin of Compose. Docker commands may list no plugins.
engine_format='{{.ServerVersion}}|{{.ID}}|{{range .ClientInfo.Plugins}}{{if eq .Name "compose"}}{{.Version}} {{.Path}}{{end}}{{end}}|'

# engine_split takes that from the beginning of said.
engine_split() {
	engine=${said%%|*} said=${said#*|}
	engine_id=${said%%|*} said=${said#*|}
	compose_version=${said%%|*} compose_plugin='' said=${said#*|}
	case $compose_version in *' /'*) compose_plugin=${compose_version#* } ;; esac
	compose_version=${compose_version%% *}
}

ask_engine() {
	said=$(docker_soon info --format "$engine_format" 2>/dev/null) || said=
	case $said in
	[0-9]*'|'?*'|'?*' /'*'|') engine_split ;;
	*)
		engine=$(docker_soon version --format '{{.Server.Version}}' 2>/dev/null) || fail_docker 'Docker does not answer' "$(docker_soon version 2>&1 >/dev/null)"
		read_engine
		compose_version='' compose_plugin=''
		;;
	esac
}

# judge_engine fails if a version is missing or too old.
judge_engine() {
	engine_major=${engine%%.*}
	case $engine_major in '' | *[!0-9]*) engine_major=0 ;; esac
	[ "$engine_major" -ge 20 ] || fail unsupported "the host has Docker Engine $engine; it needs 20.10 or newer" 'install a newer Docker Engine on the host: https://docs.docker.com/engine/install/'
	[ -n "$compose_version" ] || compose_version=$(docker compose version --short 2>&1 </dev/null) ||
		fail unsupported 'the host has no Docker Compose v2 (docker compose)' 'install the Compose plugin on the host, version 2.0 or newer: https://docs.docker.com/compose/install/linux/' "$compose_version"
	case ${compose_version#v} in
	0.* | 1.*) fail unsupported "the host has Docker Compose $compose_version; it needs 2.0 or newer" 'install the Compose plugin on the host, version 2.0 or newer: https://docs.docker.com/compose/install/linux/' ;;
	esac
	case $engine_id in *[!A-Za-z0-9:-]*) engine_id= ;; esac
	plain_docker || compose_plugin=
}

# plain_docker reports whether the docker command is Docker's own program, which starts the plugin directly. A wrapper
# may set what the plugin needs.
plain_docker() {
	case $compose_plugin in
	*' '* | '') return 1 ;;
	"$HOME/.docker/"* | /usr/lib*/docker/* | /usr/local/lib*/docker/*) ;;
	*) return 1 ;;
	esac
	[ -x "$compose_plugin" ] || return 1
	case $(head -c 4 "$(command -v docker)" 2>/dev/null | tr -d '\0') in *ELF) return 0 ;; esac
	return 1
}

# compose_command ARGUMENTS … runs docker compose, limited like bounded.
compose_command() {
	compose_limit=$1
	shift
	if [ -n "${compose_plugin-}" ] && [ -x "$compose_plugin" ]; then
		bounded "$compose_limit" "$compose_plugin" "$@"
	else
		bounded "$compose_limit" docker compose "$@"
	fi
}
