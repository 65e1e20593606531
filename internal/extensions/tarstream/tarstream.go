// Package tarstream is the one place that writes and reads the tar streams of
// file transfers, workspaces and snapshots.
//
// A stream holds folders, regular files and symbolic links, nothing else, under
// any name that Linux allows, byte for byte. The same tree gives the same
// bytes: entries come in the order of [ComparePaths], owners are dropped, modes
// are reduced to the nine permission bits and, unless [Options.KeepTimes] is
// set, times are too. Holes stay holes, on Linux: they cost nothing in the
// stream, count towards no limit and are made again. Every tar that knows GNU's
// sparse files reads them; archive/tar reads them as zeros.
//
// Both directions treat the other side as hostile. Packing opens every object
// below the os.Root it was given, compares what it opened with what it looked
// at, and never reads through a symbolic link. Unpacking never writes, lists
// or changes through one, wherever the link came from.
//
// Symbolic links are recreated literally, absolute and climbing ones included:
// a virtual environment's "python -> /usr/bin/python3" is ordinary, and a link
// that nobody follows on this machine does no harm. Who hands the result to
// programs that do follow links sets [Options.InsideLinks].
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

// Limits that apply where Options leaves a field zero.
const (
	DefaultMaxBytes   = 2 << 30 // what the files hold, holes not counted
	DefaultMaxEntries = 200_000
	DefaultMaxDepth   = 3000 // path components; each is an open folder while it is walked
	DefaultMaxExtents = 4 << 20
)

// Limits of what one call of Linux takes, in bytes. A file may lie deeper than
// one path can say; a link's target is such a path.
const (
	MaxNameBytes = 255
	MaxPathBytes = 4095
)

// Options bounds and shapes both directions; the zero value is the strictest
// form with the default limits.
type Options struct {
	// Skip leaves an object out of Pack; for a folder, all below it too. Index
	// asks it about each entry by itself.
	Skip func(path string, dir bool) bool
	// Descend tells whether a folder that Skip left out may hold something
	// that Skip keeps. Such a folder is written only if it does. Nil = never.
	Descend func(path string) bool

	MaxBytes   int64 // what the files hold, holes not counted; 0 = DefaultMaxBytes
	MaxEntries int64 // 0 = DefaultMaxEntries
	MaxDepth   int   // 0 = DefaultMaxDepth
	// MaxExtents bounds the pieces that the holes of all files leave of them, which
	// Index keeps in memory at 16 bytes each: who writes a stream decides how many
	// there are. 0 = DefaultMaxExtents.
	MaxExtents int

	// HardLinks makes Pack write further names of one file as links to its
	// first. Unpack takes a link to a file that came before in any case.
	HardLinks bool
	// OpenUp makes Pack lend itself the owner's rights to files and folders
	// whose modes deny them, while it reads them.
	OpenUp bool
	// Partial makes Pack leave out what it cannot carry and list it in
	// Manifest.Left. Without it such objects are an error that names them.
	Partial bool
	// NoEntries keeps Manifest.Entries empty: a stream of millions of entries
	// then takes no memory.
	NoEntries bool

	// KeepTimes carries modification times, in whole seconds.
	KeepTimes bool
	// InsideLinks makes Unpack refuse symbolic links whose target, read as
	// text, is absolute or climbs out of the extracted folder.
	InsideLinks bool
	// Owner is given to everything Unpack makes; nil = the caller's own.
	Owner *Owner
	// Umask is taken away from the modes Unpack sets; the process's own does not count.
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

// Type is what an entry is.
type Type string

// The three types a stream can hold.
const (
	TypeDir     Type = "dir"
	TypeFile    Type = "file"
	TypeSymlink Type = "symlink"
)

// ComparePaths orders slash-separated paths component by component, so that a
// folder's content follows the folder directly.
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

// LinkLeaves reports whether a symbolic link at path may lead outside the
// folder that path is relative to: its target is absolute, climbs higher than
// the link lies deep, or climbs after it went down. The last would need other
// links to be known: "a/b/up -> ../.." makes "a/b/up/../x" leave.
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

// checkName returns the clean form of an entry's name, "." for the root
// itself. The name must be relative, without "..", empty or overlong
// components, and without NUL.
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
		return "", refuse("lies too deep")
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

// unfitTarget says why no symbolic link can hold the target, or "".
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

// Quote shows a name in a message: printable, unambiguous whatever its bytes
// are, with the middle of a long one left out.
func Quote(name string) string {
	const most = 160
	if len(name) > most {
		return strconv.Quote(name[:most/2]) + "…" + strconv.Quote(name[len(name)-most/2:])
	}
	return strconv.Quote(name)
}
