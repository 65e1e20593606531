# The proxy that lets a denied sandbox speak to names. It is a service of the
# rendered stack, so that it comes and goes with it; here is what only the host
# can tell.
#
#	proxy_up     before the stack starts: the image is there, by its digest; exports
#	             SBX_HOST_ADDRESSES, which no name may lead to
#	proxy_down   nothing is left to do: its container and network carry the id
#
# Variables: mode, proxy_image ("" where the mode is not proxy).

proxy_up() {
	[ "$mode" = proxy ] || return 0
	docker image inspect "$proxy_image" >/dev/null 2>&1 </dev/null ||
		why=$(docker pull -q "$proxy_image" 2>&1 </dev/null) || fail_docker "the host's proxy image $proxy_image is not there and cannot be pulled" "$why"
	deny_addresses
	SBX_HOST_ADDRESSES=
	for address in $addresses; do
		case $address in
		*:*) SBX_HOST_ADDRESSES="$SBX_HOST_ADDRESSES $address/128" ;;
		*) SBX_HOST_ADDRESSES="$SBX_HOST_ADDRESSES $address/32" ;;
		esac
	done
	SBX_HOST_ADDRESSES=${SBX_HOST_ADDRESSES# }
	export SBX_HOST_ADDRESSES
}

proxy_down() { :; }
