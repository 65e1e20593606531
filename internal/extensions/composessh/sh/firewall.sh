# Walls that need root on the host: firewall rules, and devices.
#
#	firewall_up     after subnets_allocate and deny_prove, before any service starts: by mode
#	                the rules of the guarded bridges, or what denied networks need (deny_up)
#	firewall_down   after the containers went: removes all of it; quiet if there is nothing
#	deny_up         what denied networks need: exports SBX_NET_DRIVER and SBX_NET_PARENT_<i>, and
#	                makes the parents if the engine cannot; part of firewall_up
#	deny_down       removes those parents; quiet if there are none; part of firewall_down
#	firewall_check  on contact: restores missing rules, with a warning
#	as_root COMMAND…  runs a program as root in the host's network, with stdin: directly, by
#	                sudo without a password, or in the toolbox
#
# Variables: mode (deny, guarded, proxy, allow), id, box, networks, guard_bridges (words), guard_allow (words CIDR,PORT;
# port 0 is every port), subnet_ranges.
#
# The rules themselves, and the part that root runs, are those of rules.sh.

as_root() {
	if [ "${root_login:=$(id -u)}" = 0 ]; then
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
	login_known
	deny_found=$(if [ "$root_login" = 0 ]; then eval "$parents_job"; else as_root sh -c "$parents_job" sh "$@"; fi 2>&1 </dev/null)
}

# An engine that cannot make a dummy rarely has a kernel that can. The ip of busybox leaves a new device down.
# shellcheck disable=SC2016
parents_job='for name; do
	[ -e "/sys/class/net/$name" ] || ip link add up name "$name" type ifb 2>/dev/null || ip link add up name "$name" type dummy || exit
	flags=0
	{ IFS= read -r flags <"/sys/class/net/$name/flags"; } 2>/dev/null
	[ "$((flags & 1))" = 1 ] || ip link set dev "$name" up || exit
done'

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
	[ -z "$parents" ] || deny_parents $parents || fail unsupported 'the devices of the networks cannot be created' \
		'let the login use sudo without a password or be in the docker group' "$deny_found"
}

# deny_device INDEX sets device to the name of a network's device: at most 15 bytes.
deny_device() {
	device=${id#sbx-}
	device=sp${device%"${device#???????????}"}
	case $1 in
	'' | [0-9]) device=$device$1 ;;
	*) device=$device$(printf '%x' "$1") ;;
	esac
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

# firewall_place places the rules and sets sum, which identifies them from now on; false with why. Rules that lost some
# before they were read back must not count as complete.
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

# firewall_put places the rules instead of older ones; false with why.
firewall_put() {
	why=$(as_root sh -c "$firewall_job" sh put "$id" "$(firewall_rules)" "$(firewall_rules6)" 2>&1 </dev/null) || return 1
	firewall_shown=
}

# firewall_sum sets sum, which identifies the rules of id, and shown_lines, their number of lines.
firewall_sum() {
	[ -n "${firewall_shown-}" ] || firewall_shown=$(as_root sh -c "$firewall_job" sh show 2>/dev/null </dev/null)
	shown_rules=$(printf '%s\n' "$firewall_shown" | grep -F -e "SBX-$id" -e "sandboxer:$id")
	shown_lines=$(($(printf '%s\n' "$shown_rules" | wc -l)))
	sum=$(printf '%s\n' "$shown_rules" | cksum)
	sum=${sum% *}
}

# firewall_check costs nothing without rules, and one look at the firewall for all sandboxes that have some. It adds those
# whose rules stay missing to unwalled. The caller has called use_box and holds no lock.
firewall_check() {
	firewall_lacks || return 0
	restored=$(firewall_restore)
	firewall_shown=
	case $restored in *'could not be put back'*) unwalled="${unwalled-} $id" ;; esac
	[ -z "$restored" ] || warn "$restored"
}

# firewall_lacks reports whether rules of id differ from those placed.
firewall_lacks() {
	manifest_get guard_sum && [ -n "$value" ] || return 1
	former=$value
	firewall_sum
	[ "$sum" != "$former" ]
}

# firewall_restore prints the result, and runs in a subshell: it looks again under the sandbox's lock. It skips a sandbox
# that is busy or has ended.
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
		firewall_place || fail unavailable 'the firewall of the host refuses them' '' "$why"
		manifest_put guard_sum "$sum"
		printf '%s\n' "firewall rules of $id were missing and have been put back: something on the host reloads its firewall without them"
	fi
	unlock_sandbox
}

# firewall_down skips the firewall if the sandbox never had a rule: the manifest says so, or, without one, a look does.
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
