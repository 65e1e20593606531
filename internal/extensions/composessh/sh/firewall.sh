# Walls that need the host's own hand: rules of its firewall, and devices.
#
#	firewall_up     after subnets_allocate and deny_prove, before any service starts: by mode
#	                the rules of the guarded bridges, or what denied networks need (deny_up)
#	firewall_down   with the containers gone: takes all of it away; quiet where there is nothing
#	deny_up         what denied networks need: exports SBX_NET_DRIVER and SBX_NET_PARENT_<i>, and
#	                makes the parents where the engine cannot; part of firewall_up
#	deny_down       removes those parents; quiet where there are none; part of firewall_down
#	firewall_check  on contact: puts rules back that are missing, with a warning
#	as_root COMMAND…  runs a program as root of the host's network, with stdin: directly, by
#	                sudo without a password, or in the toolbox
#
# Variables: mode (deny, guarded, proxy, allow), id, box, networks, guard_bridges
# (words), guard_allow (words CIDR,PORT; port 0 is every port), subnet_ranges.
#
# Each sandbox has one chain, SBX-<id>, that judges what leaves its bridges, and
# jumps to it that carry the comment sandboxer:<id>. What the host itself is sent
# is dropped in INPUT. The engine's own rules still come after ours, so that its
# walls between networks stay.

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif [ -z "${no_sudo-}" ] && command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null </dev/null; then
		sudo -n "$@"
	else
		no_sudo=1
		set -- --interactive --network host --cap-add NET_ADMIN --cap-add NET_RAW -- "$@"
		[ ! -e /run/xtables.lock ] || set -- --mount type=bind,src=/run/xtables.lock,dst=/run/xtables.lock "$@"
		[ ! -d /lib/modules ] || set -- --mount type=bind,src=/lib/modules,dst=/lib/modules,readonly "$@"
		[ ! -d /etc/iproute2 ] || set -- --mount type=bind,src=/etc/iproute2,dst=/etc/iproute2,readonly "$@"
		toolbox_run --tmpfs /run "$@"
	fi
}

# deny_parents NAME… makes devices that lead nowhere; false with deny_found.
deny_parents() {
	# shellcheck disable=SC2016
	deny_found=$(as_root sh -c 'for name; do
		[ -e "/sys/class/net/$name" ] || ip link add "$name" type dummy 2>/dev/null || ip link add "$name" type ifb || exit
		ip link set dev "$name" up || exit
	done' sh "$@" 2>&1 </dev/null)
}

# deny_up gives the rendered networks what they need on this host.
deny_up() {
	SBX_NET_DRIVER=macvlan index=0 parents=
	[ "$deny_recipe" != bridge ] || SBX_NET_DRIVER=bridge
	export SBX_NET_DRIVER
	for network in $networks; do
		device=
		if [ "$deny_recipe" = parent ] && [ "$network" != sandboxer-egress ]; then
			deny_device "$index"
			parents="$parents $device"
		fi
		export "SBX_NET_PARENT_$index=$device"
		index=$((index + 1))
	done
	# shellcheck disable=SC2086
	[ -z "$parents" ] || deny_parents $parents || fail unsupported 'the devices of the networks cannot be made' \
		'let the login use sudo without a password or be in the docker group' "$deny_found"
}

# deny_device INDEX sets device to the name of a network's own: 15 bytes at most.
deny_device() {
	device=${id#sbx-}
	device=sp${device%"${device#???????????}"}${1:+$(printf '%x' "$1")}
}

deny_down() {
	deny_device ''
	parents=
	for entry in "/sys/class/net/$device"*; do
		[ ! -e "$entry" ] || parents="$parents ${entry##*/}"
	done
	[ -n "$parents" ] || return 0
	# shellcheck disable=SC2016,SC2086
	as_root sh -c 'for name; do ip link del "$name"; done' sh $parents </dev/null >/dev/null 2>&1
	for device in $parents; do
		[ ! -e "/sys/class/net/$device" ] || warn "the network device $device could not be removed: sudo ip link del $device"
	done
}

# What root does, in one go: arguments are put, remove or show, the id, and the
# rules of either kind. Of several variants of iptables it takes the one that the
# engine's own rules are in: there are hosts with two that know nothing of each
# other. Rules go in and out as a whole.
# shellcheck disable=SC2016
firewall_job='
act=$1 id=$2 forward=DOCKER-USER tail=none
for variant in "" -nft -legacy; do
	command -v "iptables$variant-save" >/dev/null 2>&1 || continue
	[ "$tail" != none ] || tail=$variant
	iptables$variant -w -n -L DOCKER-USER >/dev/null 2>&1 && tail=$variant && forward= && break
done
[ "$tail" != none ] || { echo "there is no iptables command"; exit 3; }
[ -z "$forward" ] && forward=DOCKER-USER || forward=FORWARD
six=
[ -e /proc/net/if_inet6 ] && command -v "ip6tables$tail-save" >/dev/null 2>&1 && six=1
if [ "$act" = show ]; then
	"iptables$tail-save" -t filter
	[ -z "$six" ] || "ip6tables$tail-save" -t filter
	exit 0
fi
change() {
	now=$("$1tables$tail-save" -t filter) || return 1
	{
		echo "*filter"
		printf "%s\n" "$now" | sed -n "/sandboxer:$id/s/^-A/-D/p"
		if [ -n "$2" ]; then
			printf "%s\n" "$2" | sed "s/@FORWARD@/$forward/"
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
		echo "-I @FORWARD@ 1 -i $bridge ! -o $bridge -m comment --comment sandboxer:$id -j SBX-$id"
		echo "-I @FORWARD@ 1 -o $bridge ! -i $bridge -m conntrack ! --ctstate ESTABLISHED,RELATED,DNAT -m comment --comment sandboxer:$id -j DROP"
		echo "-I INPUT 1 -i $bridge -m conntrack ! --ctstate ESTABLISHED,RELATED -m comment --comment sandboxer:$id -j DROP"
	done
}

# firewall_rules6: nothing of IPv6 passes, in no direction.
firewall_rules6() {
	for bridge in $guard_bridges; do
		for hook in 'FORWARD 1 -i' 'FORWARD 1 -o' 'INPUT 1 -i'; do
			echo "-I $hook $bridge -m comment --comment sandboxer:$id -j DROP"
		done
	done
}

firewall_up() {
	case $mode in
	deny | proxy) deny_up ;;
	guarded)
		manifest_put guard_bridges "$guard_bridges" guard_allow "$guard_allow" guard_ranges "$subnet_ranges"
		firewall_place || fail unsupported 'the rules of the sandbox cannot be placed in the firewall of the host' \
			'see that iptables and ip6tables work on the host, with comment and conntrack, and let the login use sudo without a password or be in the docker group' "$why"
		manifest_put guard_sum "$sum"
		;;
	esac
}

# firewall_place places the rules and sets sum to what they are known by from now
# on; false with why. What loses some before they are read must not pass for all.
firewall_place() {
	wanted=$(firewall_rules)
	[ ! -e /proc/net/if_inet6 ] || wanted="$wanted
$(firewall_rules6)"
	for _ in 1 2 3; do
		firewall_put || return 1
		firewall_sum
		[ "$shown_lines" != "$(($(printf '%s\n' "$wanted" | wc -l)))" ] || return 0
	done
	why='something on the host removes the rules while they are placed'
	return 1
}

# firewall_put places the rules, in the place of older ones; false with why.
firewall_put() {
	why=$(as_root sh -c "$firewall_job" sh put "$id" "$(firewall_rules)" "$(firewall_rules6)" 2>&1 </dev/null) || return 1
	firewall_shown=
}

# firewall_sum sets sum to what tells the rules of id from others, and shown_lines
# to how many lines they have.
firewall_sum() {
	[ -n "${firewall_shown-}" ] || firewall_shown=$(as_root sh -c "$firewall_job" sh show 2>/dev/null </dev/null)
	shown_rules=$(printf '%s\n' "$firewall_shown" | grep -F -e "SBX-$id" -e "sandboxer:$id")
	shown_lines=$(($(printf '%s\n' "$shown_rules" | wc -l)))
	sum=$(printf '%s\n' "$shown_rules" | cksum)
	sum=${sum% *}
}

# firewall_check costs nothing where a sandbox has no rules, and one look at the
# firewall for all that have. It adds those whose rules stay missing to unwalled. The caller has used use_box and holds no lock.
firewall_check() {
	firewall_lacks || return 0
	restored=$(firewall_restore)
	firewall_shown=
	case $restored in *'could not be put back'*) unwalled="${unwalled-} $id" ;; esac
	[ -z "$restored" ] || warn "$restored"
}

# firewall_lacks reports whether rules of id are not as they were placed.
firewall_lacks() {
	manifest_get guard_sum && [ -n "$value" ] || return 1
	former=$value
	firewall_sum
	[ "$sum" != "$former" ]
}

# firewall_restore prints what became of it, and runs in a subshell: under the
# lock of the sandbox it is looked at anew. One that is being worked on or has
# ended is left alone.
firewall_restore() {
	fail() {
		printf '%s\n' "firewall rules of $id are missing and could not be put back, so its egress is not bounded: $2${4:+: $4}"
		exit 0
	}
	op=firewall
	lock_sandbox 0 || return 0
	firewall_shown=
	if manifest_get state && [ "$value" != expired ] && lease_left && [ "$left" -gt 0 ] && firewall_lacks; then
		manifest_get guard_bridges && guard_bridges=$value
		manifest_get guard_allow && guard_allow=$value
		manifest_get guard_ranges && subnet_ranges=$value
		firewall_place || fail unavailable 'the firewall of the host does not take them' '' "$why"
		manifest_put guard_sum "$sum"
		printf '%s\n' "firewall rules of $id were missing and have been put back: something on the host reloads its firewall without them"
	fi
	unlock_sandbox
}

# firewall_down leaves the firewall alone where there was never a rule: the
# manifest says so, or where it is gone a look does.
firewall_down() {
	deny_down
	if [ -f "$box/manifest" ]; then
		manifest_get guard_bridges && [ -n "$value" ] || return 0
	else
		[ "$(id -u)" = 0 ] || [ -n "${allow_firewall-}" ] || return 0
		firewall_sum
		[ -n "$firewall_shown" ] || return 0
		case $firewall_shown in *"SBX-$id"* | *"sandboxer:$id"*) ;; *) return 0 ;; esac
	fi
	firewall_shown=
	why=$(as_root sh -c "$firewall_job" sh remove "$id" '' '' 2>&1 </dev/null) || fail unavailable "the firewall rules of $id could not be removed" \
		"remove what carries the comment sandboxer:$id from the host's firewall" "$why"
	[ ! -f "$box/manifest" ] || manifest_put guard_bridges '' guard_sum ''
}
