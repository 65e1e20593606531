# A connection to a port inside, with what the image has. Arguments: the nonce of the messages, the port and, for one of
# another container, its name. A message is a record separator, the nonce, a word, a record separator on standard error:
# "connected", or "refused". After "connected", standard input and output are the connection.
nonce=$1 port=$2
say() { printf '\036%s%s\036' "$nonce" "$1" >&2; }
hex=$(printf %04X "$port")
# listens prints an address at which somebody listens: the kernel knows, and not every tool says.
listens() {
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r n local remote state rest; do
		case $local.$state in
		*":$hex.0A")
			case ${local%:*} in
			00000000000000000000000001000000) echo ::1 ;;
			*) echo 127.0.0.1 ;;
			esac
			break
			;;
		esac
	done
}
to=${3:-$(listens)}
if [ -z "$to" ]; then
	say refused
	exit 0
fi
for p in python3 python; do
	if command -v "$p" >/dev/null 2>&1; then
		say connected
		exec "$p" -c '
import os, socket, sys, threading
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def back():
    try:
        while True:
            d = s.recv(65536)
            if not d: break
            while d: d = d[os.write(1, d):]
    except OSError: pass
    os._exit(0)
threading.Thread(target=back, daemon=True).start()
try:
    while True:
        d = os.read(0, 65536)
        if not d: break
        s.sendall(d)
    s.shutdown(socket.SHUT_WR)
except OSError: pass
threading.Event().wait()' "$to" "$port"
	fi
done
if command -v perl >/dev/null 2>&1 && perl -MSocket -e 1 >/dev/null 2>&1; then
	say connected
	exec perl -MSocket -e '
my ($to, $port) = @ARGV; my $six = $to =~ /:/; $SIG{PIPE} = "IGNORE";
socket(my $s, $six ? AF_INET6 : AF_INET, SOCK_STREAM, 0) or exit 1;
connect($s, $six ? Socket::pack_sockaddr_in6($port, Socket::inet_pton(AF_INET6, $to)) : pack_sockaddr_in($port, inet_aton($to))) or exit 1;
sub all { my ($to, $data) = @_; my $at = 0; while ($at < length $data) { my $n = syswrite $to, $data, length($data) - $at, $at; defined $n or return 0; $at += $n } 1 }
my $child = fork; defined $child or exit 1; my $data;
if (!$child) { close STDIN; while (sysread $s, $data, 65536) { all(*STDOUT, $data) or last } kill 9, getppid; exit 0 }
close STDOUT; while (sysread STDIN, $data, 65536) { all($s, $data) or last } shutdown $s, 1; waitpid $child, 0;' "$to" "$port"
fi
if command -v nc >/dev/null 2>&1; then
	say connected
	if nc --help 2>&1 | grep -q BusyBox; then exec nc "$to" "$port"; fi
	if nc -h 2>&1 | grep -q -e -N; then exec nc -N "$to" "$port"; fi
	exec nc "$to" "$port"
fi
if command -v socat >/dev/null 2>&1; then
	say connected
	exec socat -t 86400 - "TCP:$to:$port"
fi
if command -v bash >/dev/null 2>&1; then
	say connected
	exec bash -c 'exec 3<>"/dev/tcp/$1/$2" 4<&0; cat <&3 4<&- & back=$!; cat <&4 >&3 4<&- & exec 3<&- 4<&-; wait $back' bash "$to" "$port"
fi
say none
