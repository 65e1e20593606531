# Default deny. What walls this host's networks really have is tested once per engine, kernel and boot, because
# documentation and reality differ.
#
#	deny_prove   before the host lock: fails unsupported unless some way to deny holds here.
#	             Sets deny_proof, one line that the caller may keep and pass back as
#	             deny_proved, so that a host that lost its folder is not tested again
#	deny_clean   removes the remains of an interrupted proof; also part of deny_prove. They
#	             exist only while $root/.proof/manifest does
#
# deny_up and deny_down in firewall.sh make and remove what a sandbox's networks need for the chosen way.
#
# Variables: deny_proved, deny_ways and sshd_ports (words, optional), subnet_ranges, root.
#
# The ways, best first. macvlan: the containers' interfaces are on a dummy device, so the host is not their neighbor.
# parent: the same on a device that this script makes, where the engine cannot make a dummy. bridge: an internal bridge
# without an address; a host that does not filter by reverse path still accepts single datagrams from it (ARP answers
# for any of the host's addresses on any interface), so this way counts only where a test of that failed.
#
# What is tried, and what its output means, is wall_perl, wall_shell and wall_holds of tries.sh.

deny_version=1

# deny_identify sets deny_key, which changes with everything that can change the result.
deny_identify() {
	[ -n "${engine-}" ] || engine=$(docker version --format '{{.Server.Version}}' 2>&1 </dev/null) || fail_docker 'the docker engine does not answer' "$engine"
	{ IFS= read -r kernel </proc/sys/kernel/osrelease; } 2>/dev/null
	read_clock
	deny_key=$deny_version/$engine/${kernel:-?}/$boot
}

# deny_known accepts the line KEY RECIPE as a proof if the key is ours.
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
		flock -w 60 6 || fail unavailable 'another operation has been proving default deny for too long' "check who holds $root/.proof/lock"
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

# deny_subnets sets deny_nets, the subnets of a proof's two networks.
deny_subnets() {
	subnets_look
	lock_host
	subnets_allocate
	unlock_host
	deny_nets=$chosen
}

# deny_networks makes them as the stack's networks are rendered; false with deny_found.
deny_networks() {
	[ "$deny_recipe" != parent ] || deny_parents "sxp$$xa" "sxp$$xb" || return 1
	deny_network a "${deny_nets% *}" >"$root/.proof/said" 2>&1 &
	deny_found=$(deny_network b "${deny_nets#* }" 2>&1)
	deny_code=$?
	wait $! || deny_code=1 deny_found="$(tail -n 3 "$root/.proof/said") $deny_found"
	return "$deny_code"
}

# deny_try tests deny_recipe: two networks, a neighbor on each, and a container that tries to reach what it must not.
# True if nothing answered and the tools worked; else deny_found has the reason.
deny_try() {
	deny_left=6
	until deny_networks; do
		# Somebody else on this engine took the subnets first, as when several roots run proofs at once.
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
		set -- perl -MTime::HiRes -e "$wall_perl" --
	else
		set -- sh -c "$wall_shell" sh
	fi
	# All three start at once; the one that tries waits until the others are there.
	deny_found=$(
		{
			deny_run b --name "sandboxer-proof-$$-$deny_recipe-neighbour" --detach --ip "$deny_neighbour" -- sleep 30 </dev/null >/dev/null 2>&1 &
			deny_run a --name "sandboxer-proof-$$-$deny_recipe-peer" --detach --ip "$deny_peer" --network-alias proof-peer -- sleep 30 </dev/null >/dev/null 2>&1 && wait $! && echo go
		} | deny_run a --name "sandboxer-proof-$$-$deny_recipe-tries" --interactive --ip "$(dotted $((first + 3)))" -- "$@" "$(dotted $((first + 1)))" "$deny_peer" "$deny_neighbour" "$deny_recipe" "$(printf '%s' "$addresses" | cut -d " " -f 1-40)" "${sshd_ports:-22}" 2>&1
	)
	wall_holds "$deny_found" && deny_found= && return 0
	deny_found=$wall_why
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

# deny_run NETWORK OPTION… -- COMMAND… runs a program of the host as a service would run: with the engine's
# capabilities, without those that are always dropped.
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

# deny_addresses sets addresses to the host's IPv4 and IPv6 addresses, except loopback.
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

# deny_clean removes everything with the label and a name of this root's proofs.
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
