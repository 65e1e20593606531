package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

func openGit(ctx context.Context, loc location, ref string, opts Options) (*Source, error) {
	dir, err := os.MkdirTemp(opts.SpoolDir, spoolPrefix+"git-*")
	if err != nil {
		return nil, fmt.Errorf("create a folder for git: %w", err)
	}
	defer os.RemoveAll(dir)
	c, err := fetch(ctx, loc, ref, dir, opts)
	if err != nil {
		return nil, err
	}
	if opts.FullHistory {
		if err := c.dressUp(ctx); err != nil {
			return nil, err
		}
	}
	objects, err := c.list(ctx, opts)
	if err != nil {
		return nil, err
	}
	s, err := spool(opts.SpoolDir, func(w io.Writer) (tarstream.Manifest, error) {
		return c.export(ctx, w, objects, opts)
	})
	if err != nil {
		return nil, err
	}
	s.commit, s.origin = c.commit, loc.origin()+"@"+c.commit
	return s, nil
}

// object is one line of ls-tree.
type object struct{ mode, kind, hash, path string }

// list reads the commit's tree. It stops at the limits, since a tree that repeats itself can name billions
// of files in a few kilobytes.
func (c *clone) list(ctx context.Context, opts Options) ([]object, error) {
	limit := opts.MaxEntries
	if limit == 0 {
		limit = tarstream.DefaultMaxEntries
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all []object
	err := c.pipe(ctx, nil, func(r *bufio.Reader) error {
		for {
			line, err := r.ReadString(0)
			if errors.Is(err, io.EOF) && line == "" {
				return nil
			}
			if err != nil {
				return err
			}
			o, err := parseObject(strings.TrimSuffix(line, "\x00"))
			if err != nil {
				return err
			}
			if all = append(all, o); int64(len(all)) > limit {
				return extensions.Errorf(extensions.KindInvalid, "the repository %s has more than %d files and folders", c.loc.origin(), limit).
					WithRemedy("Use a smaller repository, or clone it inside the sandbox.")
			}
		}
	}, "ls-tree", "-r", "-t", "-z", "--full-tree", c.commit)
	slices.SortFunc(all, func(a, b object) int { return tarstream.ComparePaths(a.path, b.path) })
	return all, err
}

func parseObject(line string) (object, error) {
	meta, path, _ := strings.Cut(line, "\t")
	f := strings.Fields(meta)
	if len(f) != 3 || path == "" {
		return object{}, extensions.Errorf(extensions.KindInternal, "git listed a tree in an unknown format")
	}
	for part := range strings.SplitSeq(path, "/") {
		if isDotGit(part) {
			return object{}, extensions.Errorf(extensions.KindInvalid, "the repository has the path %q, which looks like git's own data",
				extensions.Clean(path, 200)).
				WithRemedy("Do not use this repository: no ordinary commit has such a path.")
		}
	}
	return object{f[0], f[1], f[2], path}, nil
}

// export writes the tree's objects, read from one cat-file, as a tar stream.
func (c *clone) export(ctx context.Context, w io.Writer, objects []object, opts Options) (tarstream.Manifest, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tw := tarstream.NewWriter(ctx, w, opts.tar())
	withGit := opts.FullHistory
	err := c.pipe(ctx, objects, func(r *bufio.Reader) error {
		for _, o := range objects {
			if withGit && tarstream.ComparePaths(".git", o.path) < 0 {
				if err := c.exportHistory(tw); err != nil {
					return err
				}
				withGit = false
			}
			if err := exportObject(tw, r, o); err != nil {
				return err
			}
		}
		return nil
	}, "cat-file", "--batch")
	if err == nil && withGit {
		err = c.exportHistory(tw)
	}
	if err != nil {
		return tarstream.Manifest{}, err
	}
	return tw.Close()
}

func (c *clone) exportHistory(tw *tarstream.Writer) error {
	root, err := os.OpenRoot(c.gitDir())
	if err != nil {
		return err
	}
	defer root.Close()
	return tw.Folder(".git", 0o755, root)
}

func exportObject(tw *tarstream.Writer, r *bufio.Reader, o object) error {
	switch o.kind {
	case "tree":
		return tw.Dir(o.path, 0o755)
	case "commit":
		tw.Skip(o.path, "the submodule is not fetched")
		return tw.Dir(o.path, 0o755)
	}
	head, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	f := strings.Fields(head)
	if len(f) != 3 || f[0] != o.hash || f[1] != "blob" {
		return extensions.Errorf(extensions.KindUnavailable, "git lacks the content of %q", extensions.Clean(o.path, 200)).
			WithRemedy("Try again. If it fails again, the repository is damaged (git fsck).")
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return err
	}
	switch o.mode {
	case "120000":
		target, err := readSmall(r, size)
		if err != nil {
			return err
		}
		err = tw.Symlink(o.path, target)
		if err != nil {
			return err
		}
	case "100755":
		err = tw.File(o.path, 0o755, size, r)
	default:
		err = tw.File(o.path, 0o644, size, r)
	}
	if err == nil {
		_, err = r.Discard(1) // the line break after each object
	}
	return err
}

// readSmall reads a link's target. It cuts one that is too long for any system, which is refused later for
// its length.
func readSmall(r *bufio.Reader, size int64) (string, error) {
	b := make([]byte, min(size, tarstream.MaxPathBytes+1))
	if _, err := io.ReadFull(r, b); err != nil {
		return "", err
	}
	_, err := io.CopyN(io.Discard, r, size-int64(len(b)))
	return string(b), err
}
