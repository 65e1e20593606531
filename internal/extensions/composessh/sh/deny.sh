# Default deny: what walls a network of this host really has is tried once per
# engine, kernel and boot, because documentation and truth differ between them.
#
#	deny_prove   before the host lock: fails unsupported unless some way to deny holds here.
#	             Sets deny_proof, one line that the caller may keep and give back as
#	             deny_proved, so that a host whose folder went away is not asked again
#	deny_clean   removes what an interrupted proof left; also part of deny_prove. There may be
#	             something while $root/.proof/manifest exists
#
# What the networks of a sandbox need by it, deny_up and deny_down, is in
# firewall.sh.
#
# Variables: deny_proved, deny_ways and sshd_ports (words, optional), subnet_ranges, root.
#
# The ways, best first. macvlan: the containers' interfaces hang on a dummy, so
# that the host is no neighbour of theirs at all. parent: the same on a device
# that we make, where the engine cannot make a dummy. bridge: an internal bridge
# without an address; hosts that do not filter by reverse path still take single
# datagrams from it (any address of the host is answered by ARP on any
# interface), so it counts only where that was tried and failed.

deny_version=1

# deny_identify sets deny_key, which changes with whatever could change the result.
deny_identify() {
	[ -n "${engine-}" ] || engine=$(docker version --format '{{.Server.Version}}' 2>&1 </dev/null) || fail_docker 'the docker engine does not answer' "$engine"
	{ IFS= read -r kernel </proc/sys/kernel/osrelease; } 2>/dev/null
	read_clock
	deny_key=$deny_version/$engine/${kernel:-?}/$boot
}

# deny_known takes the line KEY RECIPE for a proof where the key is ours.
deny_known() {
	case $1 in
	"$deny_key macvlan" | "$deny_key parent" | "$deny_key bridge") deny_proof=$1 deny_recipe=${1##* } ;;
	*) return 1 ;;
	esac
}

deny_stored() {
	stored=
	{ IFS= read -r stored <"$root/deny"; } 2>/dev/null
	deny_known "$stored"
}

deny_prove() {
	deny_identify
	deny_known "${deny_proved-}" && return 0
	deny_stored && return 0
	while :; do
		mkdir -p -m 0700 "$root/.proof" 2>/dev/null
		{ exec 6>>"$root/.proof/lock"; } 2>/dev/null || fail unavailable "the folder $root/.proof cannot be written" 'check the disk, and the rights of the login there'
		flock -w 60 6 || fail unavailable 'another operation has been proving default deny for too long' "look at who holds $root/.proof/lock"
		[ "$root/.proof/lock" -ef /proc/self/fd/6 ] && break
	done
	if ! deny_stored; then
		deny_all_ways
		printf '%s\n' "$deny_proof" >"$root/deny.new" && mv -f "$root/deny.new" "$root/deny"
	fi
	exec 6>&-
}

# deny_all_ways sets deny_recipe and deny_proof, or fails with what answered.
deny_all_ways() {
	deny_clean
	toolbox_image
	deny_saved_box=${box-} deny_saved_id=${id-} deny_saved_networks=${networks-} deny_saved_prefixes=${subnet_prefixes-} deny_saved_avoid=${subnets_avoid-}
	box=$root/.proof networks='a b' subnet_prefixes='29 29' deny_why=''
	deny_subnets
	for deny_recipe in ${deny_ways:-macvlan parent bridge}; do
		deny_try && break
		deny_why="$deny_why$deny_recipe: $deny_found; "
		deny_clean
		deny_recipe=
	done
	deny_clean
	rm -f "$box/manifest" "$root/.proof/said"
	box=$deny_saved_box id=$deny_saved_id networks=$deny_saved_networks subnet_prefixes=$deny_saved_prefixes subnets_avoid=$deny_saved_avoid
	[ -n "$deny_recipe" ] || fail unsupported 'default deny does not hold on this host' \
		'use a host whose kernel has macvlan and dummy interfaces, or set net.ipv4.conf.all.rp_filter=1 on this one' "$deny_why"
	deny_proof="$deny_key $deny_recipe"
}

# deny_subnets sets deny_nets to where the two networks of a proof are to be.
deny_subnets() {
	subnets_look
	lock_host
	subnets_allocate
	unlock_host
	deny_nets=$chosen
}

# deny_networks makes them, as they are rendered; false with deny_found.
deny_networks() {
	[ "$deny_recipe" != parent ] || deny_parents "sxp$$xa" "sxp$$xb" || return 1
	deny_network a "${deny_nets% *}" >"$root/.proof/said" 2>&1 &
	deny_found=$(deny_network b "${deny_nets#* }" 2>&1)
	deny_code=$?
	wait $! || deny_code=1 deny_found="$(tail -n 3 "$root/.proof/said") $deny_found"
	return "$deny_code"
}

# deny_try tries deny_recipe: two networks, a neighbour on each, and a container
# that tries to reach whatever it should not. True when nothing answered and the
# tools were seen to work; else deny_found tells.
deny_try() {
	deny_left=6
	until deny_networks; do
		# Somebody else of this engine was quicker with the subnets, as when
		# several roots prove at once.
		case $deny_found in
		*'ool overlaps'* | *'invalid pool request'*) deny_left=$((deny_left - 1)) ;;
		*) return 1 ;;
		esac
		[ "$deny_left" -gt 0 ] || return 1
		deny_clean
		sleep "0.$(($$ % 10))" 2>/dev/null || sleep $(($$ % 2))
		subnets_avoid="${subnets_avoid-} $deny_nets"
		deny_subnets
	done
	toolbox_places
	range_of "${deny_nets#* }"
	deny_neighbour=$(dotted $((first + 2)))
	range_of "${deny_nets% *}"
	deny_peer=$(dotted $((first + 2)))
	deny_addresses
	if perl -MSocket -MIO::Select -MTime::HiRes -e 1 >/dev/null 2>&1 </dev/null; then
		set -- perl -MTime::HiRes -e "$deny_perl" --
	else
		set -- sh -c "$deny_shell" sh
	fi
	# All three start at once; the one that tries waits for the word that the
	# others are there.
	deny_found=$(
		{
			deny_run b --name "sandboxer-proof-$$-$deny_recipe-neighbour" --detach --ip "$deny_neighbour" -- sleep 30 </dev/null >/dev/null 2>&1 &
			deny_run a --name "sandboxer-proof-$$-$deny_recipe-peer" --detach --ip "$deny_peer" --network-alias proof-peer -- sleep 30 </dev/null >/dev/null 2>&1 && wait $! && echo go
		} | deny_run a --name "sandboxer-proof-$$-$deny_recipe-tries" --interactive --ip "$(dotted $((first + 3)))" -- "$@" "$(dotted $((first + 1)))" "$deny_peer" "$deny_neighbour" "$deny_recipe" "$(printf '%s' "$addresses" | cut -d " " -f 1-40)" "${sshd_ports:-22}" 2>&1
	)
	case $deny_found in
	*answered* | *'control failed'*) ;;
	*'control works'*'tries ended'*)
		deny_found=
		return 0
		;;
	esac
	deny_found=$(printf '%s\n' "$deny_found" | sed -n -e '/^answered/p' -e '/^control/p' -e '/^tries/p' -e '$p' | sort -u | tail -n 12)
	return 1
}

# deny_network NAME SUBNET makes a network as it is rendered, by deny_recipe.
deny_network() {
	case $deny_recipe in
	macvlan) deny_options='-d macvlan' ;;
	parent) deny_options="-d macvlan -o parent=sxp$$x$1" ;;
	bridge) deny_options='-d bridge' ;;
	esac
	# shellcheck disable=SC2086
	docker network create $deny_options --internal -o com.docker.network.bridge.inhibit_ipv4=true --subnet "$2" \
		--label "sandboxer.proof=$root" "sandboxer-proof-$$-$1" </dev/null
}

# deny_run NETWORK OPTION… -- COMMAND… runs a program of the host as a service
# would run: with the engine's capabilities but those that are always dropped.
deny_run() {
	proof_net=sandboxer-proof-$$-$1
	shift
	n=$# split=
	while [ "$n" -gt 0 ]; do
		word=$1 n=$((n - 1))
		shift
		[ -n "$split" ] || [ "$word" != -- ] || word=$toolbox split=1
		set -- "$@" "$word"
	done
	# shellcheck disable=SC2086
	docker run --rm --network "$proof_net" --dns 127.0.0.1 --cap-drop NET_RAW --cap-drop NET_ADMIN --security-opt no-new-privileges \
		--pids-limit 256 --log-driver none --label "sandboxer.proof=$root" --entrypoint '' $places "$@"
}

# dotted prints the address of a number.
dotted() { echo "$(($1 >> 24)).$(($1 >> 16 & 255)).$(($1 >> 8 & 255)).$(($1 & 255))"; }

# deny_addresses sets addresses to those of the host, of both kinds, but for its
# loopback.
deny_addresses() {
	addresses=$(ip -o addr show 2>/dev/null </dev/null | sed -n -e 's/^[0-9]*: [^ ]* *inet6* \([0-9a-fA-F.:]*\).*/\1/p')
	if [ -z "$addresses" ]; then
		addresses=$(sed -n -e '/32 host/{x;s/.*-- //;p;x;}' -e h /proc/net/fib_trie 2>/dev/null)
	fi
	# shellcheck disable=SC2086
	addresses=$(printf '%s\n' $addresses | sed -e '/^127\./d' -e '/^::1$/d' | sort -u)
	# shellcheck disable=SC2086
	addresses=$(echo $addresses)
}

# deny_clean removes what carries the mark of this root's proofs, and such a name.
deny_clean() {
	list_named sandboxer-proof ps -a --no-trunc --filter "label=sandboxer.proof=$root" --format '{{.ID}} {{.Names}}' || return 0
	# shellcheck disable=SC2086
	[ -z "$ours" ] || docker rm -f $ours >/dev/null 2>&1 </dev/null
	list_named sandboxer-proof network ls --no-trunc --filter "label=sandboxer.proof=$root" --format '{{.Name}}' || return 0
	# shellcheck disable=SC2086
	[ -z "$ours" ] || docker network rm $ours >/dev/null 2>&1 </dev/null
	parents=
	for net in $ours "sandboxer-proof-$$-a" "sandboxer-proof-$$-b"; do
		net=${net#sandboxer-proof-}
		net=sxp${net%-*}x${net##*-}
		[ ! -e "/sys/class/net/$net" ] || parents="$parents $net"
	done
	# shellcheck disable=SC2016,SC2086
	[ -z "$parents" ] || as_root sh -c 'for name; do ip link del "$name"; done' sh $parents </dev/null >/dev/null 2>&1
}

# What is tried inside: arguments are the gateway, a peer, the neighbour, the
# recipe, the host's addresses and its sshd's ports. Every line that begins with
# "answered" is something that should not have. With perl on the host all is
# tried at once, and what no ordinary program does too: sockets that are bound to
# the interface and told not to route.
# shellcheck disable=SC2016
deny_perl='
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

# The same without perl, as far as a shell gets: enough where the host is no
# neighbour, which is why the recipe bridge is not accepted on its word.
# shellcheck disable=SC2016
deny_shell='
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
