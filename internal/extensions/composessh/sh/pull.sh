# Images that must be on a host before they run or are built on: pull_images before the stack starts, and look_at_bases for
# the bases of builds. An image's own settings must have no authority. Variables, made by imageVars, have one item per
# line, with fields between '|' that are written for printf %b; lists in a field are separated by commas.
#
#   pulls:  image|platform|missing, always or never|login
#   bases:  a field of builds, items "LOGIN PLATFORM IMAGE"
#
# A login N, '' for none, is in login_N, what a credential helper of docker answers, and helper_N, the configuration that
# names the helper.

# decode FIELD sets decoded, including trailing newlines.
decode() {
	decoded=$(printf '%b.' "$1")
	decoded=${decoded%.}
}

# ---- what images bring along

# image_facts prints os/architecture of an image, then "onbuild" if it has instructions for builds on it, and then its
# labels.
# shellcheck disable=SC2016
image_facts='{{.Os}}/{{.Architecture}}{{println}}{{with .Config}}{{if .OnBuild}}{{println "onbuild"}}{{end}}{{range $k, $v := .Labels}}{{printf "%s=%s" $k $v | println}}{{end}}{{end}}'

# claims_ours: the facts of an image on stdin have labels that would make its containers count as ours.
claims_ours() { grep -Eq '^(sandboxer\.(id|account|generation|toolbox|toolbox-for|proof)=|com\.docker\.compose\.project=sbx-)'; }

# look_at_bases puts a build's base images on the host, and refuses those with instructions for the builder.
look_at_bases() {
	commas=$IFS
	IFS=,
	set -f
	for item in $bases; do
		IFS=$commas
		decode "$item"
		base_login=${decoded%% *} decoded=${decoded#* }
		base_image=${decoded#* } base_platform=${decoded%% *}
		look_at_base
		IFS=,
	done
	set +f
	IFS=$commas
}

look_at_base() {
	facts=$(docker image inspect --format "$image_facts" -- "$base_image" 2>/dev/null </dev/null)
	case $base_platform/ in
	/ | "$(printf '%s' "$facts" | head -n 1)"/*) ;;
	*) facts= ;;
	esac
	if [ -z "$facts" ]; then
		pull_one "$base_image" "$base_platform" "$base_login"
		[ "$pull_code" != 124 ] || image_fail timeout "the image $base_image was not pulled in time" 'raise config.create_timeout, or pull the image on the host'
		if [ "$pull_code" != 0 ]; then
			judge_pull "$pull_why"
			image_fail "$judged" "the base image $base_image could not be had" "$judged_remedy" "$pull_why"
		fi
		facts=$(docker image inspect --format "$image_facts" -- "$base_image" 2>/dev/null </dev/null)
		[ -n "$facts" ] || image_fail unavailable "the base image $base_image cannot be inspected" 'try again'
	fi
	! printf '%s\n' "$facts" | grep -qx onbuild ||
		image_fail invalid "the base image $base_image has ONBUILD instructions, which sandboxer cannot check" 'move their content into the Dockerfile, and use another base image'
	! printf '%s\n' "$facts" | claims_ours ||
		image_fail invalid "the base image $base_image has labels that decide ownership" 'use another base image'
}

# ---- pulling

# pull_one IMAGE PLATFORM LOGIN pulls an image and sets pull_code and pull_why. Docker asks a helper of ours for the
# login, which has it in its environment: no file, no argument and no configuration of the host's user has it.
pull_one() {
	image_left
	progress "image Pulling the image $1|"
	pull_image=$1 pull_login=$3
	set -- pull --quiet ${2:+--platform "$2"}
	if [ -n "$pull_login" ]; then
		set -- sh -c 'DOCKER_HOST=${DOCKER_HOST-$(docker context inspect --format "{{.Endpoints.docker.Host}}" 2>/dev/null)}
			[ -n "$DOCKER_HOST" ] && export DOCKER_HOST || unset DOCKER_HOST
			PATH=$0:$PATH DOCKER_CONFIG=$0 exec docker "$@"' "$box/login" "$@"
		offer_login
	else
		set -- docker "$@"
	fi
	bounded "$image_rest" "$@" -- "$pull_image" >"$box/pull.log" 2>&1
	pull_code=$? pull_why=$(end_of 2000 <"$box/pull.log")
	rm -rf "$box/pull.log" "$box/login"
	unset SBX_LOGIN
}

# offer_login makes the helper and the configuration that names it.
offer_login() {
	eval "SBX_LOGIN=\$login_$pull_login helper_config=\$helper_$pull_login"
	rm -rf "$box/login"
	# shellcheck disable=SC2016
	mkdir -m 0700 "$box/login" && printf '%s' "$helper_config" >"$box/login/config.json" &&
		printf '#!/bin/sh\n[ "$1" != get ] || printf %%s "$SBX_LOGIN"\n' >"$box/login/docker-credential-sandboxer" &&
		chmod 0700 "$box/login/docker-credential-sandboxer" ||
		image_fail exhausted "the folder $box/login cannot be written" 'free some disk space on the host'
	export SBX_LOGIN
}

# pulls_there reports whether all images are on the host, and none is to be pulled anew. Usually one question for all
# suffices.
pulls_there() {
	fresh=
	set --
	while IFS='|' read -r image platform policy login; do
		[ -n "$image" ] || continue
		decode "$image"
		set -- "$@" "$decoded"
		[ "$policy" != always ] || fresh=1
	done <<-END
		$pulls
	END
	[ -z "$fresh" ] || return 1
	! seen_lately pulled "$pulls" || return 0
	facts=$(docker image inspect --format "$image_facts" -- "$@" 2>/dev/null </dev/null) || {
		exec 5>&-
		return 1
	}
	refuse_claims "$*"
	seen=$pulls
	see_lately pulled
}

pull_images() {
	[ -n "${pulls-}" ] || return 0
	! pulls_there || return 0
	while IFS='|' read -r image platform policy login; do
		[ -n "$image" ] || continue
		decode "$platform"
		platform=$decoded
		decode "$image"
		image=$decoded
		if [ "$policy" != always ] && facts=$(docker image inspect --format "$image_facts" -- "$image" 2>/dev/null </dev/null); then
			refuse_claims "$image"
			continue
		fi
		[ "$policy" != never ] || fail unsupported "the image $image is not on the host, and the stack forbids pulling it (pull_policy: never)" 'bring the image to the host, or drop pull_policy'
		pull_one "$image" "$platform" "$login"
		case $pull_code in
		0)
			facts=$(docker image inspect --format "$image_facts" -- "$image" 2>/dev/null </dev/null)
			refuse_claims "$image"
			continue
			;;
		124) fail timeout "the image $image was not pulled in time" 'raise config.create_timeout, or pull the image on the host' ;;
		esac
		judge_pull "$pull_why"
		fail "$judged" "the image $image could not be pulled" "$judged_remedy" "$pull_why"
	done <<-END
		$pulls
	END
}

refuse_claims() {
	! printf '%s\n' "$facts" | claims_ours || fail invalid "the image $1 has labels that decide ownership" 'use another image'
}

# judge_pull TEXT sets judged, the kind of a registry's or a connection's answer, and judged_remedy.
judge_pull() {
	case $1 in
	*'no space left on device'*) judged=exhausted judged_remedy='free some disk space on the host' ;;
	*'invalid reference format'*) judged=invalid judged_remedy='correct the name of the image' ;;
	# Before "access denied", which engines with containerd's image store say of both.
	*'no basic auth'* | *'401 Unauthorized'*) judged=unauthorized judged_remedy='set the login of the registry, or correct it, in registries of the binding' ;;
	*'manifest unknown'* | *'pull access denied'* | *'repository does not exist'* | *'not found'* | *'no matching manifest'*)
		judged=unsupported judged_remedy='check the name of the image; a private one needs a login: registries of the binding' ;;
	*unauthorized* | *'denied: '*) judged=unauthorized judged_remedy='set the login of the registry, or correct it, in registries of the binding' ;;
	*) judged=unavailable judged_remedy='check the way from the host to the registry, or bring the image there' ;;
	esac
}
