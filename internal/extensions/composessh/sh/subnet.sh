# Subnets: every network gets its own small one, chosen here, because the engine's pools hold about thirty.
#
#	subnets_look       before the host lock: sets subnets_seen, the subnets of docker's networks, and routed,
#	                   those that the host sends packets to
#	subnets_allocate   under the host lock, after use_box: chooses one subnet per word of
#	                   networks, exports SBX_NET_<i> and writes the manifest key subnets,
#	                   which is the reservation; a sandbox that has one keeps it
#
# Variables: networks (names, in the order of SBX_NET_<i>), subnet_ranges (words, CIDR), subnet_size (prefix length),
# subnet_prefixes (optional: one prefix length per network, for those that need more room). subnets_avoid: CIDRs that the
# engine has just refused.

# subnets_look sets subnets_seen, and routed. What was seen lately is as good as a fresh list: the manifests have what our
# own scripts choose meanwhile, and no lock of ours could stop others; the engine refuses their subnets, and then
# subnets_avoid is set.
subnets_look() {
	if [ -n "${subnets_avoid-}" ] || ! seen_lately subnets; then
		subnets_ask
		subnets_routed
		seen="$seen|$routed"
		see_lately subnets
	fi
	subnets_seen=${seen%|*} routed=${seen#*|}
}

# subnets_ask asks docker, and sets seen.
subnets_ask() {
	failed=
	seen=$(docker network ls -q --no-trunc 2>&1 </dev/null) || fail_docker 'the networks cannot be listed' "$seen"
	# shellcheck disable=SC2086
	seen=$(docker network inspect --format '{{range .IPAM.Config}}{{.Subnet}} {{end}}' $seen 2>&1 </dev/null) || failed=1
	# A network that was removed between the two calls takes nothing.
	case ${failed:-well}$seen in
	well* | *[Nn]'o such network'* | *'not found'*) ;;
	*) fail_docker 'the networks cannot be read' "$seen" ;;
	esac
	subnets_found=$seen seen=
	for word in $subnets_found; do
		case $word in
		*[!0-9./]* | */*/*) ;;
		[0-9]*.*.*.*/[0-9]*) seen="${seen:+$seen }$word" ;;
		esac
	done
}

# subnets_routed sets routed to where the host already sends packets. Nearly everything, such as a default route in halves,
# says nothing about our ranges.
subnets_routed() {
	routed=
	if listing=$(ip -4 route show table all 2>/dev/null </dev/null) && [ -n "$listing" ]; then
		for word in $listing; do
			case $word in
			*[!0-9./]* | */*/*) ;;
			[0-9]*.*.*.*/[0-3]) ;;
			[0-9]*.*.*.*/[0-9]*) routed="$routed $word" ;;
			[0-9]*.*.*.*) routed="$routed $word/32" ;;
			esac
		done
		return 0
	fi
	[ -r /proc/net/route ] || return 0
	while read -r _ there _ _ _ _ _ mask _; do
		case $there$mask in *[!0-9A-Fa-f]* | '') continue ;; esac
		[ "$mask" = 00000000 ] && continue
		number=$((0x$mask)) bits=0
		while [ "$number" -gt 0 ]; do
			bits=$((bits + (number & 1))) number=$((number >> 1))
		done
		[ "$bits" -gt 3 ] || continue
		number=$((0x$there))
		routed="$routed $((number & 255)).$((number >> 8 & 255)).$((number >> 16 & 255)).$((number >> 24 & 255))/$bits"
	done </proc/net/route
}

# subnets_reserved sets reserved to the subnets that other sandboxes of this root have, or are about to request.
subnets_reserved() {
	reserved='' whose='' their='' state=expired
	records=$(cd "$root" 2>/dev/null && grep -H -e '^subnets=' -e '^state=' -- */manifest 2>/dev/null </dev/null)
	entries_split
	for line in $records; do # FOLDER/manifest:KEY=VALUE, a folder's together
		[ "$root/${line%%/*}" != "$box" ] || continue
		if [ "${line%%/*}" != "$whose" ]; then
			[ "$state" = expired ] || reserved="$reserved $their"
			whose=${line%%/*} their='' state=''
		fi
		case ${line#*:} in
		subnets=*) their=${line#*:subnets=} ;;
		state=*) state=${line#*:state=} ;;
		esac
	done
	entries_joined
	[ "$state" = expired ] || reserved="$reserved $their"
}

# range_of CIDR sets first and last, the numbers of its addresses; false if it is none.
range_of() {
	case $1 in
	*[!0-9./]* | */*/* | */) return 1 ;;
	*.*.*.*/*) ;;
	*) return 1 ;;
	esac
	bits=${1#*/} rest=${1%/*}
	a=${rest%%.*} rest=${rest#*.}
	b=${rest%%.*} rest=${rest#*.}
	c=${rest%%.*} d=${rest#*.}
	case $a.$b.$c.$d in .* | *..* | *.) return 1 ;; esac
	[ "$bits" -le 32 ] || return 1
	size=$((1 << (32 - bits)))
	first=$(((a << 24 | b << 16 | c << 8 | d) / size * size))
	last=$((first + size - 1))
}

# subnets_taken sets taken to pairs of numbers, by rising start.
subnets_taken() {
	taken=$(
		for word in $subnets_seen $routed $reserved ${subnets_avoid-}; do
			range_of "$word" && printf '%s %s\n' "$first" "$last"
		done | sort -n
	)
}

# subnet_search FROM TO SIZE sets found to the first free start of SIZE addresses.
subnet_search() {
	found=$((($1 + $3 - 1) / $3 * $3)) start=''
	for word in $taken; do
		if [ -z "$start" ]; then
			start=$word
			continue
		fi
		if [ "$start" -lt $((found + $3)) ] && [ "$word" -ge "$found" ]; then
			found=$(((word + $3) / $3 * $3))
		fi
		start=
	done
	[ $((found + $3 - 1)) -le "$2" ]
}

# subnet_choose PREFIX adds one free subnet of the ranges to chosen. Other logins of the host have their own lock, so each
# begins elsewhere in the range.
subnet_choose() {
	# shellcheck disable=SC2086
	[ -z "$added" ] || taken=$(printf '%s %s\n' $taken $added | sort -n)
	span=$((1 << (32 - $1)))
	for range in $subnet_ranges; do
		range_of "$range" || fail invalid "$range is not a range of IPv4 addresses" 'correct config.subnets of the binding'
		low=$first high=$last
		middle=$((low + (high - low + 1) / span * (${root_login:=$(id -u)} % 61) / 61 * span))
		{ subnet_search "$middle" "$high" "$span" || subnet_search "$low" "$high" "$span"; } || continue
		added="$found $((found + span - 1))"
		chosen="$chosen $((found >> 24)).$((found >> 16 & 255)).$((found >> 8 & 255)).$((found & 255))/$1"
		return 0
	done
	# shellcheck disable=SC2086
	fail exhausted "no free subnet of size /$1 is left in $subnet_ranges: $(count_words $subnets_seen) are those of docker's networks, $(count_words $routed) are routed, $(count_words $reserved) belong to other sandboxes; $(count_words $networks) were wanted" \
		'end sandboxes that are not needed, or give the binding wider ranges: config.subnets'
}

count_words() { echo $#; }

# subnets_allocate fails with kind exhausted if nothing is free.
subnets_allocate() {
	# shellcheck disable=SC2086
	if manifest_get subnets && [ -z "${subnets_avoid-}" ] && [ "$(count_words $value)" = "$(count_words $networks)" ]; then
		chosen=$value
	else
		[ -n "${subnets_seen+known}" ] || subnets_look
		subnets_reserved
		subnets_taken
		chosen='' added='' prefixes=${subnet_prefixes-}
		for network in $networks; do
			prefix=${prefixes%% *}
			case $prefixes in *' '*) prefixes=${prefixes#* } ;; *) prefixes='' ;; esac
			subnet_choose "${prefix:-$subnet_size}"
		done
		chosen=${chosen# }
		manifest_put subnets "$chosen"
	fi
	index=0
	for word in $chosen; do
		export "SBX_NET_$index=$word"
		index=$((index + 1))
	done
}
