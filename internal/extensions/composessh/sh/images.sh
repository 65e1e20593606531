# Images that sandboxes leave on a host: release_images removes them after the containers went. build.sh builds them,
# pull.sh pulls others.
#
# An image is named by the digest of its inputs, so that sandboxes share it; the name alone is not trusted. root/images
# has, by digest: .id, the result; .lock, held by descriptor 6 while the image is looked for, built or removed; .for.ID of
# each sandbox that uses it, written before the look and removed without needing disk space; .log, .ids and .before of a
# build. image_lock_wait is the wait for a lock in seconds, '' = as long as a build may take. The image goes with the last
# sandbox that uses it. One that prepare.sh built also has .for.prepared until a sandbox uses it or its time is over: the
# boot, its uptime then (1/100 s), and 1 if the image is to be kept.

image_repository=sandboxer.invalid/build

# lock_image DIGEST takes the lock of an image, whose file goes with the image: 1 = no such file can exist, 2 = somebody
# else holds it for too long.
lock_image() {
	while :; do
		mkdir -p -m 0700 "$root/images" 2>/dev/null
		{ command exec 6>>"$root/images/$1.lock"; } 2>/dev/null || {
			[ -d "$root/images" ] || mkdir -m 0700 "$root/images" 2>/dev/null || [ -d "$root/images" ] || return 1
			{ command exec 6>>"$root/images/$1.lock"; } 2>/dev/null || return 1
		}
		image_left
		flock -w "${image_lock_wait:-$image_rest}" 6 || {
			unlock_image
			return 2
		}
		[ "$root/images/$1.lock" -ef /proc/self/fd/6 ] && return 0
	done
}

unlock_image() { exec 6>&-; }

# image_fail is fail without the lock: undoing a failure releases images.
image_fail() {
	unlock_image
	fail "$@"
}

# image_left sets image_rest to the seconds left for the operation.
image_left() {
	image_rest=3600
	[ -n "${limit-}" ] && [ -n "${started-}" ] || return 0
	read_clock
	image_rest=$((limit - (uptime - started) / 100))
	[ "$image_rest" -ge 1 ] || image_rest=1
}

# ---- layers

# Layers are removed one by one, from the last, and never together with their parents: an engine that keeps its images in
# containerd would also remove those of other images, and then no longer find what is above them.

# topmost prints the nameless images that no other is based on.
topmost() { docker image ls --quiet --no-trunc --filter dangling=true 2>/dev/null </dev/null; }

# sweep_layers RECORD removes the nameless images of a build. Those that others are based on stay with them.
sweep_layers() {
	if [ -f "$1.before" ]; then
		while :; do
			swept=
			for layer in $(topmost); do
				! grep -q "^$layer\$" "$1.before" || continue
				logged "$1" '' "$layer" || half_made "$1" "$layer" || continue
				docker image rm --no-prune "$layer" >/dev/null 2>&1 </dev/null && swept=1
			done
			[ -n "$swept" ] || break
		done
	fi
	rm -f "$1.log" "$1.ids" "$1.before"
}

# logged RECORD WORDS ID: the log of a build names the id, after these words.
logged() {
	short=${3#sha256:}
	short=${short%"${short#????????????}"}
	[ -n "$short" ] && grep -q "^ ---> $2$short\$" "$1.log" "$1.ids" 2>/dev/null
}

# half_made RECORD ID: an interrupted build made it without logging it: from a container it had named, or on one of its
# own nameless layers.
half_made() {
	parent=$(docker image inspect --format '{{.Container}}' "$2" 2>/dev/null </dev/null) && logged "$1" 'Running in ' "$parent" && return 0
	parent=$(docker image inspect --format '{{.Parent}}' "$2" 2>/dev/null </dev/null) && logged "$1" '' "$parent" &&
		[ -z "$(docker image inspect --format '{{range .RepoTags}}{{.}}{{end}}' "$parent" 2>/dev/null </dev/null)" ]
}

# remove_image TAG removes an image and its nameless parents, except those that others are based on. False with image_why
# if it stays.
remove_image() {
	below=$(docker image history --quiet --no-trunc "$1" 2>/dev/null </dev/null)
	image_why=$(docker image rm --no-prune "$1" 2>&1 </dev/null) || return 1
	while :; do
		swept=
		for layer in $(topmost); do
			case $below in *"$layer"*) docker image rm --no-prune "$layer" >/dev/null 2>&1 </dev/null && swept=1 ;; esac
		done
		[ -n "$swept" ] || return 0
	done
}

# ---- releasing

# images_named sets value to the digests of the images that id uses, in build order: from the manifest, or if that is
# lost from root/images.
images_named() {
	manifest_get images && [ -n "$value" ] && return 0
	value=
	# shellcheck disable=SC2012
	for entry in $(ls -tr -- "$root/images" 2>/dev/null); do
		case $entry in *".for.$id") value="$value ${entry%%.*}" ;; esac
	done
	[ -n "$value" ]
}

# release_images removes the images that were built for id and that no other sandbox uses, unless they are to be kept.
# Failures are a warning. 1 = somebody else is building an image right now: nothing of it is lost, and the images to be
# released keep their names.
release_images() {
	images_named || return 0
	releasing=$value
	manifest_get keep_images || value=
	releasing_keep=$value
	# A stage goes before its base.
	reversed=
	for digest in $releasing; do reversed="$digest $reversed"; done
	for digest in $reversed; do
		release_image "$digest" "$id" "$releasing_keep" || return 1
	done
	rmdir "$root/images" 2>/dev/null
	# An expired sandbox keeps its manifest for a while.
	quietly manifest_put images ''
}

# release_image DIGEST USER KEEP ends one use of an image, and removes it after the last one unless KEEP is 1. 1 = busy.
release_image() {
	lock_image "$1"
	case $? in
	1) warn "the image $image_repository:$1 is released without a lock: $root/images cannot be written" ;;
	2) return 1 ;;
	esac
	rm -f "$root/images/$1.for.$2"
	if image_is_shared "$1"; then
		unlock_image
		return 0
	fi
	sweep_layers "$root/images/$1"
	tag=$image_repository:$1
	if [ "$3" != 1 ] && docker image inspect "$tag" >/dev/null 2>&1 </dev/null; then
		if remove_image "$tag"; then
			case ${removed-} in *images*) ;; *) removed="${removed-} images" ;; esac
		elif docker image inspect "$tag" >/dev/null 2>&1 </dev/null; then
			warn "the image $tag stays on the host: $(printf '%s' "$image_why" | tail -n 1 | cut -c 1-300)"
		fi
	fi
	[ "$3" = 1 ] || rm -f "$root/images/$1.id"
	rm -f "$root/images/$1.lock"
	unlock_image
}

# image_is_shared DIGEST: another existing sandbox uses it, or it waits for its first one.
image_is_shared() {
	for other in "$root/images/$1.for."*; do
		[ -e "$other" ] || continue
		case $other in
		*.for.prepared) ! prepared_over "$other" || continue ;;
		*) [ -d "$root/${other##*.for.}" ] || { rm -f "$other" && continue; } ;;
		esac
		return 0
	done
	return 1
}

# ---- prepared

# prepared_over FILE: the time of a .for.prepared is over; prepared_keep is set.
prepared_over() {
	prepared_boot='' prepared_end='' prepared_keep=''
	{ IFS=' ' read -r prepared_boot prepared_end prepared_keep <"$1"; } 2>/dev/null
	case $prepared_end in '' | *[!0-9]*) return 0 ;; esac
	read_clock
	[ "$prepared_boot" != "$boot" ] || [ "$prepared_end" -le "$uptime" ]
}

# prepared_due: something of them has to end: what a killed script was preparing, or what no sandbox came for.
prepared_due() {
	glob_on
	for entry in "$root"/prepare-*; do
		[ ! -d "$entry" ] || ! flock -n "$entry/lock" true 2>/dev/null </dev/null || return 0
	done
	for entry in "$root"/images/*.for.prepared; do
		[ ! -e "$entry" ] || ! prepared_over "$entry" || return 0
	done
	return 1
}

# prepared_clean ends it.
prepared_clean() {
	image_lock_wait=0
	for folder in "$root"/prepare-*; do
		[ -d "$folder" ] || continue
		use_box "${folder##*/}"
		lock_sandbox 0 || continue
		release_images
		images_named || remove_folder ''
		exec 9>&-
	done
	for marker in "$root"/images/*.for.prepared; do
		[ -e "$marker" ] && prepared_over "$marker" || continue
		digest=${marker##*/}
		release_image "${digest%.for.prepared}" prepared "$prepared_keep"
	done
	rmdir "$root/images" 2>/dev/null
	unset image_lock_wait
}
