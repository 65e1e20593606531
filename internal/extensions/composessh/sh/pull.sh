# What is on a host before it is run or built on: pull_images, before the stack is
# started, and look_at_bases for the images that builds begin with. What images
# bring along must not order anybody about. Variables, made by imageVars, have one
# line each, of fields between '|' that are written for printf %b; lists in a field
# have commas between their items.
#
#   pulls:  image|platform|missing, always or never
#   bases:  a field of builds, items "PLATFORM IMAGE"

# decode FIELD sets decoded, trailing newlines included.
decode() {
	decoded=$(printf '%b.' "$1")
	decoded=${decoded%.}
}

# ---- what images bring along

# image_facts prints os/architecture of an image, then "onbuild" where it orders
# something for builds on it, and then its labels.
# shellcheck disable=SC2016
image_facts='{{.Os}}/{{.Architecture}}{{println}}{{with .Config}}{{if .OnBuild}}{{println "onbuild"}}{{end}}{{range $k, $v := .Labels}}{{printf "%s=%s" $k $v | println}}{{end}}{{end}}'

# claims_ours: the facts of an image on stdin have labels that would make a
# container of it somebody's, or something, of ours.
claims_ours() { grep -Eq '^(sandboxer\.(id|account|generation|toolbox|toolbox-for|proof)=|com\.docker\.compose\.project=sbx-)'; }

# look_at_bases has the images a build begins with on the host, and refuses
# those that would order the builder about.
look_at_bases() {
	commas=$IFS
	IFS=,
	set -f
	for item in $bases; do
		IFS=$commas
		decode "$item"
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
		image_left
		set -- pull --quiet
		[ -z "$base_platform" ] || set -- "$@" --platform "$base_platform"
		bounded "$image_rest" docker "$@" -- "$base_image" >"$box/pull.log" 2>&1
		code=$? pull_why=$(end_of 2000 <"$box/pull.log")
		rm -f "$box/pull.log"
		[ "$code" != 124 ] || image_fail timeout "the image $base_image was not pulled in time" 'raise config.create_timeout, or pull the image on the host'
		if [ "$code" != 0 ]; then
			judge_pull "$pull_why"
			image_fail "$judged" "the image to build on, $base_image, could not be had" "$judged_remedy" "$pull_why"
		fi
		facts=$(docker image inspect --format "$image_facts" -- "$base_image" 2>/dev/null </dev/null)
		[ -n "$facts" ] || image_fail unavailable "the image to build on, $base_image, cannot be looked at" 'try again'
	fi
	! printf '%s\n' "$facts" | grep -qx onbuild ||
		image_fail invalid "the image to build on, $base_image, has ONBUILD instructions, which nobody has judged" 'write what they do into the Dockerfile, and build on another image'
	! printf '%s\n' "$facts" | claims_ours ||
		image_fail invalid "the image to build on, $base_image, has labels that decide what belongs to whom" 'build on another image'
}

# ---- pulling

pull_images() {
	[ -n "${pulls-}" ] || return 0
	fresh=
	set --
	while IFS='|' read -r image platform policy; do
		[ -n "$image" ] || continue
		decode "$image"
		set -- "$@" "$decoded"
		[ "$policy" != always ] || fresh=1
	done <<-END
		$pulls
	END
	# One question for all is the ordinary case.
	if [ -z "$fresh" ] && facts=$(docker image inspect --format "$image_facts" -- "$@" 2>/dev/null </dev/null); then
		refuse_claims "$*"
		return 0
	fi
	while IFS='|' read -r image platform policy; do
		[ -n "$image" ] || continue
		decode "$platform"
		platform=$decoded
		decode "$image"
		image=$decoded
		if [ "$policy" != always ] && facts=$(docker image inspect --format "$image_facts" -- "$image" 2>/dev/null </dev/null); then
			refuse_claims "$image"
			continue
		fi
		[ "$policy" != never ] || fail invalid "the image $image is not on the host, and the stack forbids to pull it (pull_policy: never)" 'bring the image to the host, or drop pull_policy'
		image_left
		set -- pull --quiet
		[ -z "$platform" ] || set -- "$@" --platform "$platform"
		bounded "$image_rest" docker "$@" -- "$image" >"$box/pull.log" 2>&1
		case $? in
		0)
			facts=$(docker image inspect --format "$image_facts" -- "$image" 2>/dev/null </dev/null)
			refuse_claims "$image"
			continue
			;;
		124) fail timeout "the image $image was not pulled in time" 'raise config.create_timeout, or pull the image on the host' ;;
		esac
		pull_why=$(end_of 2000 <"$box/pull.log")
		judge_pull "$pull_why"
		fail "$judged" "the image $image could not be pulled" "$judged_remedy" "$pull_why"
	done <<-END
		$pulls
	END
	rm -f "$box/pull.log"
}

refuse_claims() {
	! printf '%s\n' "$facts" | claims_ours || fail invalid "the image $1 has labels that decide what belongs to whom" 'use another image'
}

# judge_pull TEXT sets judged, the kind of what a registry or the way to it
# answered, and judged_remedy.
judge_pull() {
	case $1 in
	*'no space left on device'*) judged=exhausted judged_remedy='free some disk space on the host' ;;
	*'manifest unknown'* | *'pull access denied'* | *'repository does not exist'* | *'not found'* | *'invalid reference format'* | *'no matching manifest'*)
		judged=invalid judged_remedy='check the name of the image; a private one needs docker login on the host' ;;
	*unauthorized* | *'no basic auth'* | *'denied: '*) judged=unauthorized judged_remedy='run docker login on the host for the registry' ;;
	*) judged=unavailable judged_remedy='check the way from the host to the registry, or bring the image there' ;;
	esac
}
