# Operation: a connection to a port of a service, from inside its network. Variables besides those of inside.sh: port, mark,
# direct (1 = addresses that the host can connect to suffice), tools (which to try, in order), cancel (1 = end the relay of
# that mark).
#
# Under default deny no route leads in. A small relay of the host's own programs runs in the container's network namespace
# instead: by nsenter as root, else in the toolbox.

use_root
use_box "$id"
need_tools
relay_name=sandboxer-relay-$mark
if [ "${cancel-}" = 1 ]; then
	docker rm -f "$relay_name" >/dev/null 2>&1 </dev/null
	[ "$(id -u)" != 0 ] || sh -c "$sbx_killer" sh "$mark" </dev/null >/dev/null 2>&1
	say '{"exit":0}'
	exit 0
fi
exec 4<&0 </dev/null
use_begin
inside_find

# relay_addresses sets own, the container's addresses, and near, those on a bridge that has a route.
relay_addresses() {
	own='' near=''
	networks=$(docker container inspect -f '{{range .NetworkSettings.Networks}}{{if .IPAddress}}{{.NetworkID}} {{.IPAddress}}{{"\n"}}{{end}}{{end}}' "$container" 2>/dev/null </dev/null)
	set -f
	# shellcheck disable=SC2086
	set -- $networks
	set +f
	while [ $# -gt 1 ]; do
		own="$own $2"
		bridge=$(docker network inspect -f '{{range $k, $v := .Options}}{{if eq $k "com.docker.network.bridge.name"}}{{$v}}{{end}}{{end}}' "$1" 2>/dev/null </dev/null)
		[ -n "$bridge" ] || bridge=br-$(printf '%s' "$1" | cut -c 1-12)
		grep -q "^$bridge[[:space:]]" /proc/net/route 2>/dev/null && near="$near $2"
		shift 2
	done
}

relay_addresses
# A direct connection is no process here that holds the lock of a use.
if [ -n "$direct" ] && [ -n "$near" ] && ! { manifest_get idle && [ -n "$value" ]; }; then
	list=
	for address in $near; do list="$list${list:+,}\"$address:$port\""; done
	say "{\"direct\":[$list],\"service\":\"$service\"}"
	exit 0
fi

# The rest runs in the namespace, with the arguments nonce, port and addresses. The first byte to cross means nothing:
# "connected" is a message. "eof" has the number of bytes after which the service closed its side, since a closed stdout
# does not cross docker.

# shellcheck disable=SC2016
RELAY_PERL='
use strict; use Socket;
my ($nonce, $port, @to) = @ARGV;
$SIG{PIPE} = "IGNORE"; binmode STDIN; binmode STDOUT;
sub tell_ { syswrite STDERR, "\x1e$nonce$_[0]\x1e" }
sub all_ { my ($to, $data) = @_; my $at = 0;
	while ($at < length $data) { my $n = syswrite $to, $data, length($data) - $at, $at; defined $n or return 0; $at += $n } 1 }
my ($s, $why);
for my $to (@to) {
	my $six = $to =~ /:/;
	my $name = $six ? Socket::pack_sockaddr_in6($port, Socket::inet_pton(AF_INET6, $to)) : pack_sockaddr_in($port, inet_aton($to));
	if (socket($s, $six ? AF_INET6 : AF_INET, SOCK_STREAM, 0) && connect $s, $name) { $why = ""; last }
	$why ||= "$!"; undef $s;
}
unless ($s) { $why =~ s/["\\]//g; tell_(qq({"refused":"$why"})); exit 0 }
tell_(q({"connected":"perl"}));
my $child = fork;
if (!defined $child) { tell_(q({"refused":"no more processes"})); exit 0 }
my $data;
if (!$child) {
	close STDIN;
	my $sum = 0;
	while (sysread $s, $data, 65536) { $sum += length $data; all_(*STDOUT, $data) or last }
	tell_(qq({"eof":$sum}));
	exit 0;
}
close STDOUT;
while (sysread STDIN, $data, 65536) { all_($s, $data) or last }
shutdown $s, 1;
waitpid $child, 0;
'
RELAY_PYTHON='
import os, socket, sys, threading
nonce, port, to = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
def tell(text): os.write(2, ("\x1e%s%s\x1e" % (nonce, text)).encode())
def put(data):
    while data: data = data[os.write(1, data):]
s, why = None, "no address"
for a in to:
    try:
        s = socket.create_connection((a, port)); break
    except OSError as e:
        why = e.strerror or "unreachable"
if s is None:
    tell("{\"refused\":\"%s\"}" % why.replace("\"", "")); os._exit(0)
tell("{\"connected\":\"python3\"}")
def back():
    n = 0
    try:
        while True:
            d = s.recv(65536)
            if not d: break
            n += len(d); put(d)
    except OSError: pass
    tell("{\"eof\":%d}" % n)
t = threading.Thread(target=back, daemon=True); t.start()
try:
    while True:
        d = os.read(0, 65536)
        if not d: break
        s.sendall(d)
    s.shutdown(socket.SHUT_WR)
except OSError: pass
t.join(); os._exit(0)
'
# shellcheck disable=SC2016
relay_bash='
nonce=$1 port=$2; shift 2
for a; do
	if { exec 3<>"/dev/tcp/$a/$port"; } 2>/dev/null; then
		printf "\036%s%s\036" "$nonce" "{\"connected\":\"bash\"}" >&2
		exec 4<&0
		cat <&3 4<&- & back=$!
		cat <&4 >&3 4<&- &
		exec 3<&- 4<&-
		wait $back
		exit 0
	fi
done
printf "\036%s%s\036" "$nonce" "{\"refused\":\"Connection refused\"}" >&2
'
# The sh around them looks for tools. nc cannot report that it is connected: the kernel says whether somebody listens.
# shellcheck disable=SC2016
relay_sh='
nonce=$1 port=$2; shift 2
say() { printf "\036%s%s\036" "$nonce" "$1" >&2; }
listens() {
	hex=$(printf "%04X" "$port")
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r _ local _ state _; do
		case $local.$state in
		*":$hex.0A") echo "${local%:*}"; break ;;
		esac
	done
}
for tool in $RELAY_TOOLS; do
	case $tool in
	perl) perl -MSocket -e 1 >/dev/null 2>&1 && exec perl -e "$RELAY_PERL" -- "$nonce" "$port" "$@" ;;
	python3) python3 -c "import socket, threading" >/dev/null 2>&1 </dev/null && exec python3 -c "$RELAY_PYTHON" "$nonce" "$port" "$@" ;;
	nc | socat)
		if [ "$tool" = socat ]; then
			command -v socat >/dev/null 2>&1 || continue
			set_nc() { set -- socat -t 86400 - "TCP:$1:$port"; exec "$@"; }
		elif busybox nc --help 2>&1 | grep -q BusyBox; then
			set_nc() { exec busybox nc "$1" "$port"; }
		elif command -v ncat >/dev/null 2>&1; then
			set_nc() { exec ncat "$1" "$port"; }
		elif nc -h 2>&1 | grep -q -e "-N"; then
			set_nc() { exec nc -N "$1" "$port"; }
		else
			continue
		fi
		case $(listens) in
		"") say "{\"refused\":\"Connection refused\"}"; exit 0 ;;
		00000000 | 0100007F | 00000000000000000000000000000000) to=127.0.0.1 ;;
		00000000000000000000000001000000) to=::1 ;;
		*) for to; do case $to in 127.* | *:*) ;; *) break ;; esac; done ;;
		esac
		say "{\"connected\":\"$tool\"}"
		set_nc "$to" 2>/dev/null
		;;
	bash) command -v bash >/dev/null 2>&1 && exec bash -c "$RELAY_BASH" bash "$nonce" "$port" "$@" ;;
	esac
done
say "{\"refused\":\"\",\"state\":\"no-tool\"}"
'
RELAY_BASH=$relay_bash RELAY_TOOLS=${tools:-perl python3 nc socat bash} SANDBOXER_EXEC=$mark
export RELAY_PERL RELAY_PYTHON RELAY_BASH RELAY_TOOLS SANDBOXER_EXEC
# The service's own address comes last: some listen only there.
# shellcheck disable=SC2086
set -- "$sbx_channel" "$port" 127.0.0.1 ::1 $own
if network_open "$pid" "$container"; then
	exec nsenter --net=/proc/self/fd/5 sh -c "$relay_sh" sh "$@" <&4 4<&-
fi
toolbox_image || fail unsupported "this host cannot run a relay: $why" 'let docker import the empty toolbox image, or log in as root with nsenter'
toolbox_exec=exec
toolbox_run -i --name "$relay_name" --network "container:$container" --env RELAY_PERL --env RELAY_PYTHON --env RELAY_BASH --env RELAY_TOOLS \
	-- sh -c "$relay_sh" sh "$@" <&4 4<&-
