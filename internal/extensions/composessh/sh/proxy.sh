# The proxy that lets a denied sandbox reach names. It is a service of the rendered stack, so it starts and ends with it;
# this file has what only the host knows.
#
#	proxy_up     before the stack starts: the image is there, by its digest; exports
#	             SBX_HOST_ADDRESSES, which no name may lead to
#	proxy_down   does nothing: its container and network carry the id
#
# Variables: mode, proxy_image ("" if the mode is not proxy).

proxy_up() {
	[ "$mode" = proxy ] || return 0
	docker image inspect "$proxy_image" >/dev/null 2>&1 </dev/null ||
		why=$(docker pull -q "$proxy_image" 2>&1 </dev/null) || fail_docker "the host's proxy image $proxy_image does not exist there and cannot be pulled" "$why"
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
