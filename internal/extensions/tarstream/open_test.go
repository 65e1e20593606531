package tarstream

import (
	"errors"
	"testing"
)

func TestAFileSwappedAfterTheLookIsNotRead(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "f=1", "other=2", "d/x=3")
	seen, err := root.Lstat("f")
	must(t, err)
	must(t, root.Rename("f", "kept")) // so that its inode is not used again
	for name, swap := range map[string]func() error{
		"a link":       func() error { return root.Symlink("other", "f") },
		"another file": func() error { return root.Link("other", "f") },
		"a folder":     func() error { return root.Mkdir("f", 0o755) },
		"a FIFO":       func() error { return makeFIFO(root.Name() + "/f") },
	} {
		must(t, root.RemoveAll("f"))
		must(t, swap())
		if f, _, err := openFile(root, "f", seen); !errors.Is(err, errChanged) {
			t.Errorf("%s: got %v, %v", name, f, err)
		}
	}
}

func TestFoldersAreOpenedWithoutFollowingLinks(t *testing.T) {
	t.Parallel()
	root := makeTree(t, "d/e/f=1", "in->d", "d/up->..", "x=1")
	for _, at := range []string{"in", "in/e", "d/up", "d/up/d", "x", "x/y"} {
		if dir, err := OpenFolder(root, at); err == nil {
			t.Errorf("%s: opened %s", at, dir.Name())
		}
		if dir, err := MakeFolder(root, at+"/new"); err == nil {
			t.Errorf("%s: made %s", at, dir.Name())
		}
	}
	for _, at := range []string{".", "d/e", "d/e/new/er"} {
		dir, err := MakeFolder(root, at)
		must(t, err)
		must(t, dir.Close())
	}
}
