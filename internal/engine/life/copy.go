package life

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// CopyIn copies a file or a folder of this machine to a path inside, as cp -r does: into it if it is a folder there or
// ends in "/", else under that name. Of a folder that ends in "/." it copies the content. Folders on the way are made.
func (m *Manager) CopyIn(ctx context.Context, rec plan.Receipt, from, to string, notify notice.Notify) error {
	info, err := os.Stat(from)
	if err != nil {
		return notCopied(from, err)
	}
	b, row, err := m.enterRow(ctx, rec)
	if err != nil {
		return err
	}
	if !contentOf(from) {
		whole, err := filepath.Abs(from)
		if err != nil {
			return notCopied(from, err)
		}
		if folder, _ := isFolder(ctx, b, row, to); folder || to == "" || strings.HasSuffix(to, "/") {
			to = path.Join(to, filepath.Base(whole))
		}
	}
	dir, pack := to, packFolder
	if !info.IsDir() {
		dir, pack = parent(to), packFile(path.Base(to))
	}
	tell := m.copying(ctx, notify)
	return through(func(w io.Writer) error {
		left, err := pack(ctx, &counted{Writer: w, tell: tell}, from)
		for _, s := range left.Skipped {
			notify.Tell("Left out", "%s: %s", s.Path, s.Reason)
		}
		return err
	}, func(r io.Reader) error { return b.Upload(ctx, row.Handle, dir, r) })
}

// through connects both ends of a copy. The reader's error is the writer's, if that failed first.
func through(write func(io.Writer) error, read func(io.Reader) error) error {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.CloseWithError(write(w))
	}()
	err := read(r)
	_ = r.Close()
	<-done
	return err
}

func packFolder(ctx context.Context, w io.Writer, from string) (tarstream.Manifest, error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return tarstream.Manifest{}, notCopied(from, err)
	}
	defer root.Close()
	return tarstream.Pack(ctx, w, root, tarstream.Options{NoEntries: true})
}

func packFile(name string) func(context.Context, io.Writer, string) (tarstream.Manifest, error) {
	return func(ctx context.Context, w io.Writer, from string) (m tarstream.Manifest, err error) {
		f, err := os.Open(from)
		if err != nil {
			return m, notCopied(from, err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is neither a file nor a folder")
		}
		if err != nil {
			return m, notCopied(from, err)
		}
		out := tarstream.NewWriter(ctx, w, tarstream.Options{NoEntries: true})
		if err := out.File(name, info.Mode().Perm(), info.Size(), f); err != nil {
			return m, err
		}
		return out.Close()
	}
}

// CopyOut copies a file or a folder inside to a path of this machine, as CopyIn does the other way. A file appears
// whole or not at all. Links are copied as they are, wherever they lead. A folder that is copied into another one does
// not follow a link of its name there. If single objects could not be read inside, all others are copied, and the error
// wraps [extensions.Incomplete].
func (m *Manager) CopyOut(ctx context.Context, rec plan.Receipt, from, to string, notify notice.Notify) error {
	if to == "" {
		return extensions.Invalid("the local path is empty", "name a file or a folder; . is the current folder")
	}
	b, row, err := m.enterRow(ctx, rec)
	if err != nil {
		return err
	}
	folder, known := isFolder(ctx, b, row, from)
	base := path.Base(path.Clean("/" + from))
	if !contentOf(from) && from != "" && base != "/" {
		if info, err := os.Stat(to); err == nil && info.IsDir() || os.IsPathSeparator(to[len(to)-1]) {
			to = filepath.Join(to, base)
			if at, err := os.Lstat(to); folder && err == nil && at.Mode()&fs.ModeSymlink != 0 { // that of an earlier copy, maybe
				return extensions.Errorf(extensions.KindConflict, "%s is a link, and no folder", extensions.Clean(to, 200)).
					WithRemedy("remove it first, or name another folder")
			}
		}
	}
	var lacks error
	tell := m.copying(ctx, notify)
	err = through(func(w io.Writer) error {
		incomplete, err := b.Download(ctx, row.Handle, from, &counted{Writer: w, tell: tell})
		if incomplete != nil {
			lacks, err = err, nil
		}
		return err
	}, func(r io.Reader) error {
		if known && folder {
			return landFolder(ctx, r, to)
		}
		return landAny(ctx, r, base, to, known)
	})
	return errors.Join(err, lacks)
}

// landFolder extracts a stream into a folder, which it makes if it is missing.
func landFolder(ctx context.Context, r io.Reader, to string) error {
	if err := os.MkdirAll(to, 0o777); err != nil { //nolint:gosec // less the umask, as cp does
		return notCopied(to, err)
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return notCopied(to, err)
	}
	defer root.Close()
	_, err = tarstream.Unpack(ctx, r, root, ".", landing)
	return err
}

var landing = tarstream.Options{NoEntries: true, Umask: 0o022}

// landAny extracts a stream beside its destination and moves what it was, one object or a folder, there. single says
// that it is no folder.
func landAny(ctx context.Context, r io.Reader, base, to string, single bool) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil { //nolint:gosec // less the umask, as cp does
		return notCopied(to, err)
	}
	beside, err := os.MkdirTemp(filepath.Dir(to), ".copy-*")
	if err != nil {
		return notCopied(to, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(beside)) }()
	if err := landFolder(ctx, r, beside); err != nil {
		return err
	}
	whole := beside
	if single || isOne(beside, base) {
		whole = filepath.Join(beside, base)
	}
	if err := os.Rename(whole, to); err != nil {
		return notCopied(to, err)
	}
	return nil
}

// isOne reports that a folder holds nothing but an object of this name that is no folder.
func isOne(dir, name string) bool {
	all, err := os.ReadDir(dir)
	return err == nil && len(all) == 1 && all[0].Name() == name && !all[0].IsDir()
}

// isFolder asks whether a path inside is a folder; known is false where nothing can answer.
func isFolder(ctx context.Context, b *place.Backend, row ledger.Sandbox, p string) (folder, known bool) {
	if p == "" {
		return true, true
	}
	if b.Can(extensions.PowerExec) != nil {
		return false, false
	}
	res, err := b.Exec(ctx, row.Handle, place.Command{ExecRequest: extensions.ExecRequest{
		Command: []string{"test", "-d", p}, Timeout: 30 * time.Second}})
	return err == nil && res.ExitCode == 0, err == nil && res.ExitCode <= 1
}

// contentOf reports a folder that stands for its content.
func contentOf(p string) bool { return p == "." || strings.HasSuffix(filepath.ToSlash(p), "/.") }

// parent returns the folder of a path inside; "" = the workspace.
func parent(p string) string {
	if dir := path.Dir(p); dir != "." {
		return dir
	}
	return ""
}

// counted tells how much passes, from a size on that takes long.
type counted struct {
	io.Writer
	tell extensions.ProgressFunc
	n    int64
}

const worthTelling = 4 << 20

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	if c.n += int64(n); c.n >= worthTelling {
		c.tell("Copying", fmt.Sprintf("%d MiB", c.n>>20))
	}
	return n, err
}

// copying returns who is told of a copy: the listener of ctx, and notify now and then.
func (m *Manager) copying(ctx context.Context, notify notice.Notify) extensions.ProgressFunc {
	ctx = extensions.WithProgress(ctx, progress(notify, m.places.Clock))
	return func(subject, detail string) { extensions.Progress(ctx, subject, detail) }
}

func notCopied(name string, err error) error {
	kind := extensions.KindInvalid
	if errors.Is(err, fs.ErrNotExist) {
		kind = extensions.KindNotFound
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return extensions.Errorf(kind, "%s: %w", extensions.Clean(name, 200), err).
		WithRemedy("name a file or folder that you may read, or a folder that you may write to")
}
