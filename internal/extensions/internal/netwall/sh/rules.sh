# The firewall of one sandbox. Variables: id, guard_bridges (words), guard_allow (words CIDR,PORT; port 0 is every port),
# subnet_ranges. How a part is run as root is the place's.
#
# Each sandbox has one chain, SBX-<id>, for packets from its bridges, and jumps to it with the comment sandboxer:<id>.
# INPUT drops packets to the host itself. All are in the table mangle, which packets pass before filter, and which engines
# and firewall services leave alone: the engine takes its jump to DOCKER-USER out and puts it back with each network that
# it makes, and while it is out nothing there holds. The engine's own rules still follow ours, so its walls between networks
# remain.

# The part that root runs, in one go: arguments are put, remove or show, the id, and the IPv4 and IPv6 rules. It adds and
# removes rules as a whole.
# shellcheck disable=SC2016
firewall_job='
act=$1 id=$2 tail=none
for variant in "" -nft -legacy; do
	command -v "iptables$variant-save" >/dev/null 2>&1 && "iptables$variant" -w -t mangle -n -L FORWARD >/dev/null 2>&1 && tail=$variant && break
done
[ "$tail" != none ] || { echo "there is no iptables command that works"; exit 3; }
six=
[ -e /proc/net/if_inet6 ] && command -v "ip6tables$tail-save" >/dev/null 2>&1 && six=1
if [ "$act" = show ]; then
	"iptables$tail-save" -t mangle
	[ -z "$six" ] || "ip6tables$tail-save" -t mangle
	exit 0
fi
change() {
	now=$("$1tables$tail-save" -t mangle) || return 1
	{
		echo "*mangle"
		printf "%s\n" "$now" | sed -n "/sandboxer:$id/s/^-A/-D/p"
		if [ -n "$2" ]; then
			printf "%s\n" "$2"
		else
			printf "%s\n" "$now" | sed -n "s/^:\(SBX-$id\) .*/-F \1/p"
			printf "%s\n" "$now" | sed -n "s/^:\(SBX-$id\) .*/-X \1/p"
		fi
		echo COMMIT
	} | "$1tables$tail-restore" -w -n
}
change ip "$3" || exit 4
[ -z "$six" ] || change ip6 "$4" || exit 5
[ -n "$six" ] || [ "$act" = remove ] || [ ! -e /proc/net/if_inet6 ] || { echo "there is no ip6tables command"; exit 5; }'

# firewall_rules prints the rules of id for IPv4.
firewall_rules() {
	echo ":SBX-$id - [0:0]"
	echo "-A SBX-$id -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"
	for range in $subnet_ranges; do
		echo "-A SBX-$id -d $range -j DROP"
	done
	own=
	for rule in $guard_allow; do
		case $rule in 169.254.*) own=1 ;; esac
	done
	[ -n "$own" ] || echo "-A SBX-$id -d 169.254.0.0/16 -j DROP"
	for rule in $guard_allow; do
		ports="--dport ${rule#*,} "
		[ "$ports" != '--dport 0 ' ] || ports=
		echo "-A SBX-$id -d ${rule%,*} -p tcp $ports-j RETURN"
		echo "-A SBX-$id -d ${rule%,*} -p udp $ports-j RETURN"
	done
	echo "-A SBX-$id -j DROP"
	for bridge in $guard_bridges; do
		echo "-I FORWARD 1 -i $bridge ! -o $bridge -m comment --comment sandboxer:$id -j SBX-$id"
		echo "-I FORWARD 1 -o $bridge ! -i $bridge -m conntrack ! --ctstate ESTABLISHED,RELATED,DNAT -m comment --comment sandboxer:$id -j DROP"
		echo "-I INPUT 1 -i $bridge -m conntrack ! --ctstate ESTABLISHED,RELATED -m comment --comment sandboxer:$id -j DROP"
	done
}

# firewall_rules6 prints those for IPv6: nothing passes, in either direction.
firewall_rules6() {
	for bridge in $guard_bridges; do
		for hook in 'FORWARD 1 -i' 'FORWARD 1 -o' 'INPUT 1 -i'; do
			echo "-I $hook $bridge -m comment --comment sandboxer:$id -j DROP"
		done
	done
}
