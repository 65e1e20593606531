# Operation inside: archives the path $1, a folder by its content. $2: holes of files are kept if the archiver can, or
# filled; $3: bytes that holes of large files may become; $4: the script sift. 43 = there is no archiver, 44 = there is no
# such path, 45 = the folder cannot be entered; otherwise the archiver's own code.
#
# GNU tar keeps holes, the others fill them: of the files that are mostly holes, the smallest are sent as far as $3 allows;
# the others stay behind and are reported.

LC_ALL=C
export LC_ALL
command -v tar >/dev/null 2>&1 || exit 43
if [ ! -h "$1" ] && [ -d "$1" ]; then
	cd -- "$1" || exit 45
	set -- . "$2" "$3" "$4"
else
	[ -e "$1" ] || [ -h "$1" ] || exit 44
	d=${1%/*}
	cd -- "${d:-/}" || exit 45
	set -- "./${1##*/}" "$2" "$3" "$4"
fi
case $2$(tar --version 2>/dev/null) in
kept*GNU*) exec tar -S --format=posix --sparse-version=0.1 -cf - "$1" ;;
esac
limit=$(find "$1" -type f -size +524288k -exec sh -c "$4" sh holes 0 {} \; 2>/dev/null | sort -n | {
	sum=0
	while read -r n; do
		sum=$((sum + n))
		[ "$sum" -le "$3" ] || { echo "$n" && break; }
	done
})
if [ -n "$limit" ]; then
	find "$1" ! -type d -exec sh -c "$4" sh pack "$limit" {} +
	exit 1
fi
exec tar -cf - "$1"
