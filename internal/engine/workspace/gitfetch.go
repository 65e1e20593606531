package workspace

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// clone is a private object store that holds the wanted commit.
type clone struct {
	loc    location
	dir    string
	commit string
	branch string
}

func (c *clone) git(ctx context.Context, args ...string) (string, error) {
	return run(ctx, c.loc, c.dir, append([]string{"--git-dir=" + c.gitDir()}, args...)...)
}

func (c *clone) gitDir() string { return filepath.Join(c.dir, ".git") }

// fetch gets the commit: alone if the server gives single commits and no history is wanted, otherwise with
// everything.
func fetch(ctx context.Context, loc location, ref string, dir string, opts Options) (*clone, error) {
	res, err := resolve(ctx, loc, ref)
	if err != nil {
		return nil, err
	}
	c := &clone{loc: loc, dir: dir, commit: res.commit, branch: res.branch}
	init := []string{"init", "--quiet", "--template="}
	if len(res.commit) == 64 {
		init = append(init, "--object-format=sha256")
	}
	if _, err := c.git(ctx, init...); err != nil {
		return nil, err
	}
	ctx, stop := c.watch(ctx, cmp.Or(opts.MaxBytes, tarstream.DefaultMaxBytes))
	defer stop()
	if res.commit != "" && !opts.FullHistory {
		_, err := c.git(ctx, "fetch", "--quiet", "--no-tags", "--depth=1", "--", loc.url, res.commit)
		if err == nil {
			return c, c.verify(ctx, res.commit)
		}
		if extensions.IsKind(err, extensions.KindUnauthorized) || ctx.Err() != nil {
			return nil, err
		}
	}
	if _, err := c.git(ctx, "fetch", "--quiet", "--no-tags", "--", loc.url, "+refs/heads/*:refs/remotes/origin/*",
		"+refs/tags/*:refs/tags/*"); err != nil {
		return nil, err
	}
	return c, c.verify(ctx, cmp.Or(res.commit, ref))
}

// verify resolves want, a full or short hash, to the commit in the store.
func (c *clone) verify(ctx context.Context, want string) error {
	out, err := c.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", want+"^{commit}")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.commit = strings.TrimSpace(out)
	if err != nil || !strings.HasPrefix(c.commit, want) || !fullCommit.MatchString(c.commit) {
		return noSuchRef(c.loc, want)
	}
	return nil
}

// watch ends the context once the object store exceeds limit bytes: git itself does not limit what a
// server sends.
func (c *clone) watch(ctx context.Context, limit int64) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if folderSize(c.dir) > limit {
					cancel(extensions.Errorf(extensions.KindInvalid, "the repository %s is larger than %d bytes", c.loc.origin(), limit).
						WithRemedy("Use a smaller repository, or clone it inside the sandbox."))
				}
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

func folderSize(dir string) int64 {
	var n int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil { // git renames and removes files meanwhile
			return nil
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			n += info.Size()
		}
		return nil
	})
	return n
}

// dressUp turns the object store into a working repository: the remote without credentials, the branch
// checked out, an index, no hooks.
func (c *clone) dressUp(ctx context.Context) error {
	steps := [][]string{
		{"config", "remote.origin.url", c.loc.url},
		{"config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"},
		{"read-tree", c.commit},
	}
	if c.branch == "" {
		steps = append(steps, []string{"update-ref", "--no-deref", "HEAD", c.commit})
	} else {
		steps = append(steps,
			[]string{"update-ref", "refs/heads/" + c.branch, c.commit},
			[]string{"symbolic-ref", "HEAD", "refs/heads/" + c.branch},
			[]string{"config", "branch." + c.branch + ".remote", "origin"},
			[]string{"config", "branch." + c.branch + ".merge", "refs/heads/" + c.branch})
	}
	for _, args := range steps {
		if _, err := c.git(ctx, args...); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(c.gitDir(), "FETCH_HEAD")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
