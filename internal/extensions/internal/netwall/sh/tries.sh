# What default deny is proved by: attempts from inside, and what their output means. How they are run inside is the place's:
# as a service would run, with a peer that may answer.

# wall_holds OUTPUT is true if nothing answered and the tools worked; else wall_why has the reason.
wall_holds() {
	wall_why=
	case $1 in
	*answered* | *'control failed'*) ;;
	*'control works'*'tries ended'*) return 0 ;;
	esac
	wall_why=$(printf '%s\n' "$1" | sed -n -e '/^answered/p' -e '/^control/p' -e '/^tries/p' -e '$p' | sort -u | wall_samples)
	return 1
}

# wall_samples passes three sorted lines of each kind, so that no kind hides another.
wall_samples() {
	wall_last=
	while IFS= read -r wall_line; do
		wall_kind=${wall_line#answered }
		wall_kind=${wall_kind%% *}
		[ "$wall_kind" = "$wall_last" ] || wall_count=0
		wall_last=$wall_kind
		wall_count=$((wall_count + 1))
		[ "$wall_count" -gt 3 ] || printf '%s\n' "$wall_line"
	done
}

# The attempts: go on stdin once the peer is there; arguments are the gateway, a peer, the neighbor, the recipe, the host's addresses and its sshd's
# ports. A line that begins with "answered" is something that must not answer. With perl on the host, everything is tried
# at once, including what no ordinary program does: sockets bound to the interface that bypass routing.
# shellcheck disable=SC2016
wall_perl='
use strict; use Socket; use IO::Select; use Fcntl; use Errno;
my ($gateway, $peer, $neighbour, $recipe, $hosts, $ports) = @ARGV;
my (@open, %what);
(<STDIN> // "") eq "go\n" or print "control failed: a container beside could not be started\n";
sub answered { print "answered $_[0]\n" }
sub sock { my ($family, $type, $proto) = @_; socket(my $s, $family, $type, $proto) or return; fcntl($s, F_SETFL, O_NONBLOCK); return $s }
sub watch { my ($s, $label, $tcp) = @_; $what{fileno $s} = [$label, $tcp]; push @open, $s }
sub onlink { my $s = shift; setsockopt($s, SOL_SOCKET, 25, "eth0\0"); setsockopt($s, SOL_SOCKET, 5, pack("i", 1)) }
sub tcp { my ($ip, $port, $near) = @_; my $s = sock(AF_INET, SOCK_STREAM, 0) or return; onlink($s) if $near;
	my $label = "TCP $ip port $port" . ($near ? " past the routes" : "");
	if (connect($s, sockaddr_in($port, inet_aton($ip)))) { answered($label) } elsif ($!{ECONNREFUSED}) { answered("$label, refused") } elsif ($!{EINPROGRESS}) { watch($s, $label, 1) } }
sub udp { my ($ip, $port, $near, $data, $label) = @_; my $s = sock(AF_INET, SOCK_DGRAM, 0) or return; setsockopt($s, SOL_SOCKET, SO_BROADCAST, pack("i", 1)); onlink($s) if $near;
	connect($s, sockaddr_in($port, inet_aton($ip))) or return; send($s, $data, 0); watch($s, $label || ("UDP $ip port $port" . ($near ? " past the routes" : "")), 0) }
sub icmp { my $ip = shift; my $s = sock(AF_INET, SOCK_DGRAM, 1) or return; connect($s, sockaddr_in(0, inet_aton($ip))) or return; send($s, pack("CCnnn", 8, 0, 0, 1, 1), 0); watch($s, "ICMP $ip", 0) }
sub six { my ($ip, $type, $near) = @_; my $addr = eval { Socket::inet_pton(AF_INET6, $ip) } or return; my $s = sock(AF_INET6, $type, 0) or return; setsockopt($s, SOL_SOCKET, 25, "eth0\0") if $near;
	my $label = ($type == SOCK_STREAM ? "TCP" : "UDP") . " [$ip]";
	if (connect($s, Socket::pack_sockaddr_in6(22, $addr, $near ? 2 : 0))) { if ($type == SOCK_STREAM) { answered($label) } else { answered("$label could be sent") if send($s, "x", 0) } }
	elsif ($!{ECONNREFUSED}) { answered("$label, refused") } elsif ($!{EINPROGRESS}) { watch($s, $label, 1) } }
my $control = sock(AF_INET, SOCK_STREAM, 0); my $named = gethostbyname("proof-peer");
if (!$named) { print "control failed: the peer has no name\n" }
elsif (inet_ntoa($named) ne $peer) { print "control failed: the peer has another address\n" }
else { connect($control, sockaddr_in(9, $named)); watch($control, "control", 1) }
my $query = pack("nnnnnn", 7, 256, 1, 0, 0, 0) . join("", map { pack("C/a*", $_) } "proof", "example", "org") . pack("Cnn", 0, 1, 1);
my ($dns) = do { open(my $f, "<", "/etc/resolv.conf"); map { /^nameserver\s+([\d.]+)/ ? $1 : () } <$f> };
udp($dns, 53, 0, $query, "DNS") if $dns;
my @four = grep { !/:/ } split " ", $hosts;
my @ports = (split(" ", $ports), 53);
for my $ip ($gateway, $neighbour, "169.254.169.254", "1.1.1.1", @four) {
	tcp($ip, $_, 0), udp($ip, $_, 0, $query) for @ports;
	tcp($ip, $ports[0], 1); udp($ip, 9, 1, "x"); icmp($ip) }
udp($_, 9, 1, "x") for "255.255.255.255", "224.0.0.1";
for my $ip ("fe80::1", "ff02::1", "2606:4700:4700::1111", grep { /:/ } split " ", $hosts) { six($ip, SOCK_STREAM, $ip =~ /^f[ef]/i); six($ip, SOCK_DGRAM, $ip =~ /^f[ef]/i) }
answered("a raw IP socket was given") if socket(my $r, AF_INET, SOCK_RAW, 1);
answered("a raw frame socket was given") if socket(my $p, 17, SOCK_RAW, 768);
answered("a packet socket was given") if socket(my $d, 17, SOCK_DGRAM, 768);
my ($read, $write) = (IO::Select->new(@open), IO::Select->new(grep { $what{fileno $_}[1] } @open));
my $end = time + 2; my $left = 0.6; my $works;
while ($read->count && $left > 0 && time < $end) {
	my $from = Time::HiRes::time(); my ($r, $w) = IO::Select->select($read, $write, undef, $left); $left -= Time::HiRes::time() - $from;
	for my $s (@{$r || []}, @{$w || []}) {
		my $n = fileno $s; defined $n && $what{$n} or next; my ($label, $tcp) = @{$what{$n}};
		my $bytes; my $got = $tcp ? undef : sysread($s, $bytes, 512); my $err = $tcp ? unpack("i", getsockopt($s, SOL_SOCKET, SO_ERROR)) : $got ? 0 : $! + 0;
		my $refused = $err == Errno::ECONNREFUSED();
		if ($label eq "control") { $works = 1 if $refused || !$err }
		elsif ($label eq "DNS") { my $code = $got && length $bytes > 3 ? ord(substr $bytes, 3, 1) & 15 : 2; answered("DNS, code $code") if $code == 0 || $code == 3 }
		elsif (!$err || $refused) { answered($label . ($refused ? ", refused" : "")) }
		delete $what{$n}; $read->remove($s); $write->remove($s) } }
print $works ? "control works\n" : "control failed: the peer does not answer\n";
if (open(my $f, "<", "/proc/net/arp")) { <$f>; for (<$f>) { my ($ip, undef, $flags) = split; answered("ARP $ip") if hex($flags) & 2 && $ip ne $peer } }
if (open(my $f, "<", "/proc/net/if_inet6")) { for (<$f>) { my @w = split; answered("an IPv6 address on $w[5]") if $w[5] ne "lo" } }
print "tries ended\n";'

# The same without perl, as far as a shell can: enough where the host is not a neighbor, so the recipe bridge is not
# accepted on its word.
# shellcheck disable=SC2016
wall_shell='
gateway=$1 peer=$2 neighbour=$3 recipe=$4 hosts=$5 ports=$6
IFS= read -r word
[ "$word" = go ] || echo "control failed: a container beside could not be started"
dial() {
	if command -v bash >/dev/null 2>&1; then
		said=$(timeout 1 bash -c ": </dev/tcp/$1/$2" 2>&1) && said=connected
	else
		said=$(nc -w 1 "$1" "$2" </dev/null 2>&1) && said=connected
	fi
	case $said in connected | *refused*) echo "$3 TCP $1 port $2" ;; esac
}
case $(dial proof-peer 9 reached) in reached*) echo "control works" ;; *) echo "control failed: the peer does not answer" ;; esac
[ "$recipe" != bridge ] || echo "answered: single datagrams cannot be tried on a host without perl"
for a in $gateway $neighbour 169.254.169.254 1.1.1.1 $hosts; do
	case $a in *:*) continue ;; esac
	for p in $ports 53; do dial "$a" "$p" answered & done
	ping -c 1 -W 1 "$a" >/dev/null 2>&1 && echo "answered ICMP $a" &
done
nslookup proof.example.org 2>&1 </dev/null | grep -q "NXDOMAIN\|^Name:" && echo "answered DNS" &
wait
while read -r name caps; do [ "$name" != CapBnd: ] || [ $((0x$caps >> 12 & 3)) = 0 ] || echo "answered: raw sockets are allowed"; done </proc/self/status
[ ! -e /proc/net/if_inet6 ] || while read -r _ _ _ _ _ name; do [ "$name" = lo ] || echo "answered: $name has an IPv6 address"; done </proc/net/if_inet6
while read -r ip _ flags _; do case $flags in 0x0 | type) ;; *) [ "$ip" = IP ] || [ "$ip" = "$peer" ] || echo "answered ARP $ip" ;; esac; done </proc/net/arp
echo "tries ended"'
