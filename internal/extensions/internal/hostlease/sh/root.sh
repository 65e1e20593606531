# The host root must be a folder of this login alone, below folders that only root can change: whoever can put another
# folder or script in its place runs programs as this login.

# check_root fails unless that holds. A missing folder is fine; root_seen is set if root exists.
check_root() {
	root_seen=
	case $root in *'
'*) refuse_root 'its name has a line break' 'set config.root of the binding' ;; esac
	[ ! -h "$root" ] || refuse_root "$root is a symbolic link" 'name the folder itself in config.root of the binding'
	[ ! -e "$root" ] || [ -d "$root" ] || refuse_root "$root is not a folder" 'name a folder in config.root of the binding'
	[ ! -d "$root" ] || root_seen=1
	root_places=$root
	places_above "$root"
	root_near=$root
	while [ ! -d "$root_near" ]; do
		root_near=${root_near%/*}
		root_near=${root_near:-/}
	done
	# The folders that links lead to count, and so do those of the links.
	root_real=$(cd -P -- "$root_near" 2>/dev/null && pwd -P)
	[ -z "$root_real" ] || [ "$root_real" = "$root_near" ] || places_above "$root_real/."
	login_known
	glob_off
	IFS='
'
	# shellcheck disable=SC2086
	root_places=$(ls -ldn -- $root_places 2>/dev/null </dev/null)
	for root_place in $root_places; do
		IFS=$blanks
		# shellcheck disable=SC2086
		judge_place $root_place
	done
	IFS=$blanks
	glob_on
}

# login_known sets root_login, the user id of this login.
login_known() {
	[ -z "${root_login-}" ] || return 0
	while read -r root_key _ root_value _; do
		[ "$root_key" != Uid: ] || { root_login=$root_value && break; }
	done 2>/dev/null </proc/self/status
	: "${root_login:=$(id -u)}"
}

# places_above PATH adds the existing folders above it to root_places, one per line.
places_above() {
	root_place=$1
	while [ "$root_place" != / ] && [ -n "$root_place" ]; do
		root_place=${root_place%/*}
		root_place=${root_place:-/}
		[ ! -e "$root_place" ] || root_places="$root_places
$root_place"
	done
}

# judge_place MODE LINKS OWNER GROUP … judges a folder by its line of ls.
judge_place() {
	case $root_place in
	*" $root")
		[ "$3" = "$root_login" ] || refuse_root "$root belongs to the user id $3" "remove it, or let it belong to $(id -un)"
		case $1 in
		d???------*) return 0 ;;
		esac
		refuse_root "$root is open to others ($1)" "chmod 700 $root, unless others may have written there: then remove it"
		;;
	esac
	root_above=/${root_place#*/}
	case $3 in
	0 | "$root_login") ;;
	*) refuse_root "$root_above belongs to the user id $3" 'name a folder below ones of your own in config.root of the binding' ;;
	esac
	case $1 in
	l* | d????-??-* | d????????[tT]*) return 0 ;;
	d???????-*)
		# The group may have no other member than the login, as with umask 002.
		[ "$4" = 0 ] || { [ "$4" = "$(id -g)" ] && [ "$(id -gn)" = "$(id -un)" ]; } && return 0
		;;
	esac
	refuse_root "$root_above, above $root, can be written by others" "chmod go-w $root_above, or name another folder in config.root of the binding"
}

refuse_root() {
	IFS=$blanks
	glob_on
	fail invalid "the host root cannot be trusted: $1" "$2"
}
