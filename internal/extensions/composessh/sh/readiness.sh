# The profile's readiness probe. Variables: probe_kind, probe_service ('' = the default one), probe_command (shell words),
# probe_target (a URL or host:port). One try takes at most five seconds; the caller decides how often and how long.

# ready_probe tries once: 0 = the probe answered, else why has the reason and probe_container the container it is about.
ready_probe() {
	why='' probe_container=''
	probe_find || return 1
	case $probe_kind in
	command) probe_by_command ;;
	http | tcp) probe_by_network ;;
	*) why="a probe of the kind $probe_kind is not known" && return 1 ;;
	esac
}

# probe_find sets probe_on (the service), probe_container and probe_pid.
probe_find() {
	probe_on=${probe_service-}
	if [ -z "$probe_on" ] && manifest_get service; then
		probe_on=$value
	fi
	set -- --filter "label=sandboxer.id=$id" --filter "name=^/?$id[-_]" --format '{{.ID}} {{.Label "com.docker.compose.service"}}'
	[ -z "$probe_on" ] || set -- --filter "label=com.docker.compose.service=$probe_on" "$@"
	probe_container=$(docker ps --no-trunc "$@" 2>/dev/null </dev/null | head -n 1)
	if [ -z "$probe_container" ]; then
		why="the service ${probe_on:-of the probe} does not run"
		return 1
	fi
	probe_on=${probe_container#* }
	probe_container=${probe_container%% *}
}

# probe_words sets probe_of to the service of a failed probe, which is the one its target names, if any, and detail to that
# service's last output.
probe_words() {
	for probe_of in "${probe_host-}" "$probe_on"; do
		[ -n "$probe_of" ] || continue
		failed_container=$(docker ps -a --no-trunc --filter "label=sandboxer.id=$id" --filter "name=^/?$id[-_]" --filter "label=com.docker.compose.service=$probe_of" \
			--format '{{.ID}}' 2>/dev/null </dev/null | head -n 1)
		[ -z "$failed_container" ] || break
	done
	last_lines
}

# probe_limited SECONDS COMMAND… runs it with that much time; probe_said is its output, and its code is returned: 137 =
# time was over.
probe_limited() {
	probe_said=$(
		limit=$1
		shift
		"$@" 2>&1 </dev/null &
		tried=$!
		{
			over='' nap=''
			trap 'over=1; [ -z "$nap" ] || kill -9 "$nap" 2>/dev/null' TERM
			sleep "$limit" &
			nap=$!
			[ -z "$over" ] || kill -9 "$nap" 2>/dev/null
			wait "$nap"
			[ -n "$over" ] || kill -9 "$tried" 2>/dev/null
		} >/dev/null 2>&1 &
		watch=$!
		wait "$tried"
		code=$?
		kill "$watch" 2>/dev/null
		wait "$watch" 2>/dev/null
		exit "$code"
	)
	probe_code=$?
	# The last line says most, and a message must stay short.
	probe_said=$(printf '%s\n' "$probe_said" | grep -v '^[[:space:]]*$' | tail -n 1 | cut -c 1-300)
	return "$probe_code"
}

probe_by_command() {
	read_clock
	probe_mark=probe$$-$uptime-${id#sbx-}
	eval "set -- $probe_command"
	set -- "$probe_container" "$@"
	# Like other commands, it starts in the workspace.
	if manifest_get service && [ "$value" = "$probe_on" ] && manifest_get mount && [ -n "$value" ]; then
		set -- --workdir "$value" "$@"
	fi
	probe_limited 5 docker exec --env "SANDBOXER_EXEC=$probe_mark" "$@" && return 0
	if [ "$probe_code" = 137 ]; then
		mark_kill "$probe_mark" "$probe_container"
		why="the command did not end within 5 s in $probe_on${probe_said:+; it printed: $probe_said}"
	else
		why="the command ended with exit code $probe_code in $probe_on${probe_said:+: $probe_said}"
	fi
	return 1
}

# probe_by_network connects from inside the service's network, with the host's programs.
probe_by_network() {
	probe_rest=$probe_target probe_path=/ probe_scheme=http
	if [ "$probe_kind" = http ]; then
		case $probe_target in
		http://*) probe_rest=${probe_target#http://} ;;
		https://*) probe_rest=${probe_target#https://} probe_scheme=https ;;
		*) why="$probe_target is no http:// URL" && return 1 ;;
		esac
		probe_rest=${probe_rest%%#*}
		case $probe_rest in
		*/*) probe_path=/${probe_rest#*/} probe_rest=${probe_rest%%/*} ;;
		*'?'*) probe_path=/?${probe_rest#*'?'} probe_rest=${probe_rest%%'?'*} ;;
		esac
		probe_rest=${probe_rest##*@}
	fi
	probe_port=''
	case $probe_rest in
	'['*']:'*) probe_host=${probe_rest#'['} probe_host=${probe_host%%']'*} probe_port=${probe_rest##*:} ;;
	'['*']') probe_host=${probe_rest#'['} probe_host=${probe_host%']'} ;;
	*:*) probe_host=${probe_rest%:*} probe_port=${probe_rest##*:} ;;
	*) probe_host=$probe_rest ;;
	esac
	case $probe_scheme:$probe_port in
	http:) probe_port=80 ;;
	https:) probe_port=443 ;;
	esac
	case $probe_port in
	'' | *[!0-9]*) why="$probe_target names no port" && return 1 ;;
	esac
	probe_addresses
	# shellcheck disable=SC2086
	set -- "$probe_kind" "$probe_scheme" "$probe_host" "$probe_port" "$probe_path" $probe_to
	probe_pid=$(docker container inspect -f '{{.State.Pid}}' "$probe_container" 2>/dev/null </dev/null)
	if network_open "$probe_pid" "$probe_container"; then
		probe_limited 5 nsenter --net=/proc/self/fd/5 sh -c "$probe_client" sh "$@"
		exec 5<&-
		[ "$probe_code" != 0 ] || return 0
	elif toolbox_image; then
		probe_limited 8 toolbox_run --network "container:$probe_container" -- sh -c "$probe_client" sh "$@" && return 0
	else
		return 1
	fi
	[ "$probe_code" != 137 ] || probe_said='no answer in time'
	why="$probe_target does not answer in $probe_on: ${probe_said:-no answer}"
	return 1
}

# probe_addresses sets probe_to to the addresses of the target's name, by the service's own resolver.
probe_addresses() {
	case $probe_host in
	localhost | '') probe_to='127.0.0.1 ::1' && return 0 ;;
	*:*) probe_to=$probe_host && return 0 ;;
	*[!0-9.]*) ;;
	*) probe_to=$probe_host && return 0 ;;
	esac
	probe_to=''
	for peer in $(docker ps -q --no-trunc --filter "label=sandboxer.id=$id" --filter "name=^/?$id[-_]" --filter "label=com.docker.compose.service=$probe_host" 2>/dev/null </dev/null); do
		probe_to="$probe_to $(docker container inspect -f '{{if eq .HostConfig.NetworkMode "none"}}127.0.0.1 ::1{{else}}{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}{{end}}' "$peer" 2>/dev/null </dev/null)"
	done
	[ -n "$probe_to" ] || probe_to=$probe_host
}

# probe_client runs there: kind, scheme, host, port, path, addresses. It prints why it failed. 2xx and 3xx are success.
# shellcheck disable=SC2016
probe_client='
kind=$1 scheme=$2 host=$3 port=$4 path=$5; shift 5
judge() {
	case $1 in
	[23][0-9][0-9]) exit 0 ;;
	[0-9][0-9][0-9]) echo "HTTP status $1"; exit 1 ;;
	esac
}
bracket() { case $1 in *:*) echo "[$1]" ;; *) echo "$1" ;; esac; }
if [ "$kind" = http ] && command -v curl >/dev/null 2>&1; then
	for to; do
		status=$(curl -sSk -o /dev/null -m 4 --noproxy "*" -w "%{http_code}" -H "Host: $(bracket "$host"):$port" "$scheme://$(bracket "$to"):$port$path" 2>/dev/null || :)
		[ "$status" = 000 ] || judge "$status"
	done
	echo "connection refused, or no HTTP"
	exit 1
fi
if [ "$scheme" = https ]; then
	for to; do
		wget -q -O /dev/null -T 4 --no-check-certificate "https://$(bracket "$to"):$port$path" 2>&1 && exit 0
	done
	exit 1
fi
if command -v perl >/dev/null 2>&1 && perl -MSocket -e 1 2>/dev/null; then
	exec perl -e "
		use Socket; my (\$kind, \$host, \$port, \$path, @to) = @ARGV; alarm 4; my \$why;
		for my \$to (@to) {
			my \$six = \$to =~ /:/; my \$s;
			my \$n = \$six ? Socket::inet_pton(AF_INET6, \$to) : inet_aton(\$to);
			unless (defined \$n) { \$why ||= qq(the name \$to is not known); next }
			unless (socket(\$s, \$six ? AF_INET6 : AF_INET, SOCK_STREAM, 0) && connect(\$s, \$six ? Socket::pack_sockaddr_in6(\$port, \$n) : pack_sockaddr_in(\$port, \$n))) { \$why ||= qq(\$!); next }
			exit 0 if \$kind eq q(tcp);
			\$host = qq([\$host]) if \$host =~ /:/;
			syswrite \$s, qq(GET \$path HTTP/1.1\r\nHost: \$host:\$port\r\nUser-Agent: sandboxer\r\nConnection: close\r\n\r\n);
			my \$l = <\$s>;
			if (!defined \$l || \$l !~ m{^HTTP/1\.\d (\d\d\d)}) { \$why = q(the answer is not HTTP); next }
			exit 0 if \$1 =~ /^[23]/;
			\$why = qq(HTTP status \$1);
		}
		print qq(\$why\n); exit 1" -- "$kind" "$host" "$port" "$path" "$@"
fi
if command -v bash >/dev/null 2>&1; then
	exec bash -c "
		kind=\$1 host=\$2 port=\$3 path=\$4 why=; shift 4
		for to; do
			exec 3>&-
			{ exec 3<>/dev/tcp/\$to/\$port; } 2>/dev/null || { : \"\${why:=connection refused}\"; continue; }
			[ \"\$kind\" = http ] || exit 0
			printf \"GET %s HTTP/1.1\\r\\nHost: %s:%s\\r\\nUser-Agent: sandboxer\\r\\nConnection: close\\r\\n\\r\\n\" \"\$path\" \"\$host\" \"\$port\" >&3
			IFS=\" \" read -r -t 4 version status _ <&3
			case \$version:\$status in
			HTTP/1.*:[23]??*) exit 0 ;;
			HTTP/1.*) why=\"HTTP status \$status\" ;;
			*) why=\"the answer is not HTTP\" ;;
			esac
		done
		echo \"\$why\"; exit 1" bash "$kind" "$host" "$port" "$path" "$@"
fi
if [ "$kind" = http ]; then
	for to; do
		wget -q -O /dev/null -T 4 "http://$(bracket "$to"):$port$path" 2>&1 && exit 0
	done
	exit 1
fi
hex=$(printf "%04X" "$port")
while read -r _ local _ state _; do
	case $local.$state in *":$hex.0A") exit 0 ;; esac
done <<END
$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
END
echo "nothing listens on port $port"
exit 1
'
