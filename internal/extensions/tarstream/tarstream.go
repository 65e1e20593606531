// Package tarstream is the one place that writes and reads the tar streams of file transfers, workspaces and
// snapshots.
//
// A stream holds only folders, regular files and symbolic links, under any name that Linux allows, byte for
// byte. The same tree gives the same bytes: entries come in [ComparePaths] order, owners are dropped, modes
// are reduced to the nine permission bits and, unless [Options.KeepTimes] is set, times are dropped too. On
// Linux holes stay holes: they take no room in the stream, count towards no limit and are restored. Any tar
// that supports GNU's sparse files reads them; archive/tar reads them as zeros.
//
// Both directions treat the other side as hostile. Pack opens every object below its os.Root, compares what
// it opened with what it saw before, and never reads through a symbolic link. Unpack never writes, lists or
// changes anything through one, wherever the link came from.
//
// Symbolic links are recreated literally, even absolute and climbing ones: a virtual environment's "python ->
// /usr/bin/python3" is ordinary, and a link that nobody follows on this machine does no harm. A caller that
// passes the result to programs that follow links sets [Options.InsideLinks].
package tarstream

import (
	"cmp"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits that apply if an Options field is zero.
const (
	DefaultMaxBytes   = 2 << 30 // content of the files, holes not counted
	DefaultMaxEntries = 200_000
	DefaultMaxDepth   = 3000 // path components; the walk keeps one open folder for each
	DefaultMaxExtents = 4 << 20
)

// Limits of one Linux system call, in bytes. A file may lie deeper than one path can say; a link's target is
// such a path.
const (
	MaxNameBytes = 255
	MaxPathBytes = 4095
)

// Options bound and shape both directions. The zero value is the strictest form with the default limits.
type Options struct {
	// Skip leaves an object out of Pack, with everything below a folder. Index asks it about each entry
	// separately.
	Skip func(path string, dir bool) bool
	// Descend reports whether a folder that Skip left out may hold something that Skip keeps. Such a folder
	// is written only if it does. Nil = never.
	Descend func(path string) bool

	MaxBytes   int64 // content of the files, holes not counted; 0 = DefaultMaxBytes
	MaxEntries int64 // 0 = DefaultMaxEntries
	MaxDepth   int   // 0 = DefaultMaxDepth
	// MaxExtents bounds the pieces that holes cut all files into. Index keeps each in memory at 16 bytes, and
	// whoever writes a stream decides how many there are. 0 = DefaultMaxExtents.
	MaxExtents int

	// HardLinks makes Pack write a file's further names as links to its first. Unpack always accepts a link
	// to an earlier file.
	HardLinks bool
	// OpenUp makes Pack add the owner's permissions to files and folders that deny them, while it reads them.
	OpenUp bool
	// Partial makes Pack leave out what it cannot carry and list it in Manifest.Left. Otherwise an error
	// names such objects.
	Partial bool
	// NoEntries keeps Manifest.Entries empty, so that a stream of millions of entries takes no memory.
	NoEntries bool

	// KeepTimes carries modification times, in whole seconds.
	KeepTimes bool
	// InsideLinks makes Unpack refuse symbolic links whose target, read as text, is absolute or climbs out of
	// the extracted folder.
	InsideLinks bool
	// Owner owns everything Unpack creates; nil = the caller.
	Owner *Owner
	// Umask is removed from the modes Unpack sets; the process's own umask does not count.
	Umask fs.FileMode
}

// Owner is a numeric user and group.
type Owner struct{ UID, GID int }

func (o Options) withDefaults() Options {
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxEntries = cmp.Or(o.MaxEntries, DefaultMaxEntries)
	o.MaxDepth = cmp.Or(o.MaxDepth, DefaultMaxDepth)
	o.MaxExtents = cmp.Or(o.MaxExtents, DefaultMaxExtents)
	return o
}

// Type is the type of an entry.
type Type string

// The three types a stream can hold.
const (
	TypeDir     Type = "dir"
	TypeFile    Type = "file"
	TypeSymlink Type = "symlink"
)

// ComparePaths orders slash-separated paths component by component, so that a folder's content directly
// follows the folder.
func ComparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// LinkLeaves reports whether a symbolic link at path may lead outside the folder that path is relative to. It
// may if its target is absolute, climbs higher than the link lies deep, or climbs after descending. The last
// depends on other links: "a/b/up -> ../.." makes "a/b/up/../x" leave.
func LinkLeaves(at, target string) bool {
	if path.IsAbs(target) || strings.ContainsRune(target, '\\') || filepath.VolumeName(target) != "" {
		return true
	}
	room, down := strings.Count(at, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if room--; down || room < 0 {
				return true
			}
		default:
			down = true
		}
	}
	return false
}

// checkName returns the clean form of an entry's name, "." for the root itself. The name must be relative,
// without "..", NUL, and empty or overlong components.
func checkName(name string, maxDepth int) (string, error) {
	refuse := func(why string) error {
		return extensions.Errorf(extensions.KindInvalid, "the name %s %s", Quote(name), why)
	}
	switch {
	case name == "":
		return "", refuse("is empty")
	case strings.ContainsRune(name, 0):
		return "", refuse("contains a NUL byte")
	case path.IsAbs(name):
		return "", refuse("is absolute")
	}
	clean := strings.TrimSuffix(name, "/")
	for strings.HasPrefix(clean, "./") {
		clean = strings.TrimPrefix(clean, "./")
	}
	if clean == "." || clean == "" && name != "" {
		return ".", nil
	}
	parts := strings.Split(clean, "/")
	if len(parts) > maxDepth {
		return "", refuse("is nested too deep")
	}
	for _, part := range parts {
		switch {
		case part == "" || part == "." || part == "..":
			return "", refuse("is not a clean relative path")
		case len(part) > MaxNameBytes:
			return "", refuse("has a component longer than 255 bytes")
		}
	}
	return clean, nil
}

// unfitTarget says why no symbolic link can hold the target; "" if one can.
func unfitTarget(target string) string {
	switch {
	case target == "":
		return "is empty"
	case len(target) > MaxPathBytes:
		return "is longer than 4095 bytes"
	case strings.ContainsRune(target, 0):
		return "contains a NUL byte"
	}
	return ""
}

// Quote formats a name for a message: printable and unambiguous for any bytes, with the middle of a long name
// omitted.
func Quote(name string) string {
	const most = 160
	if len(name) > most {
		return strconv.Quote(name[:most/2]) + "…" + strconv.Quote(name[len(name)-most/2:])
	}
	return strconv.Quote(name)
}
