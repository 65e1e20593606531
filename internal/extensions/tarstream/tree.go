package tarstream

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// tree walks the folders below a root without following links. It keeps those on the way to the last one
// open, so that sorted paths open each folder once.
type tree struct {
	top  *os.Root
	way  []string
	open []*os.Root // open[i] is way[:i+1]
}

func newTree(top *os.Root) *tree { return &tree{top: top} }

func (t *tree) close() { t.back(0) }

func (t *tree) back(depth int) {
	for _, dir := range t.open[depth:] {
		_ = dir.Close()
	}
	t.open, t.way = t.open[:depth], t.way[:depth]
}

func (t *tree) last() *os.Root {
	if len(t.open) == 0 {
		return t.top
	}
	return t.open[len(t.open)-1]
}

// enter opens the folder at, valid until the next call. If made is set, it creates missing folders with mode
// 0700 and reports each.
func (t *tree) enter(at string, made func(path string)) (*os.Root, error) {
	var parts []string
	if at != "." && at != "" {
		parts = strings.Split(at, "/")
	}
	same := 0
	for same < len(parts) && same < len(t.way) && parts[same] == t.way[same] {
		same++
	}
	t.back(same)
	for i := same; i < len(parts); i++ {
		dir, err := t.step(parts[i], strings.Join(parts[:i+1], "/"), made)
		if err != nil {
			return nil, err
		}
		t.way, t.open = append(t.way, parts[i]), append(t.open, dir)
	}
	return t.last(), nil
}

func (t *tree) step(name, at string, made func(string)) (*os.Root, error) {
	if made != nil {
		err := t.last().Mkdir(name, 0o700)
		if err == nil {
			made(at)
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	dir, err := openDir(t.last(), name)
	if err != nil {
		return nil, inTheWay(err, at)
	}
	return dir, nil
}

// deepestFirst orders folders so that each precedes its parents.
func deepestFirst(dirs []dirEntry) {
	slices.SortFunc(dirs, func(a, b dirEntry) int { return ComparePaths(b.entry.Path, a.entry.Path) })
}
