package vendor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// MaxLog bounds an object's log, in bytes; beyond it the log starts over.
const MaxLog = 1 << 20

func (v *Vendor) logPath(ref string) string { return filepath.Join(v.home(ref), "log") }

// logWriter appends what commands print to the object's log, in whole lines.
type logWriter struct {
	v    *Vendor
	ref  string
	mu   sync.Mutex
	rest []byte
}

func (l *logWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	if i := bytes.LastIndexByte(l.rest, '\n'); i >= 0 {
		l.append(l.rest[:i+1])
		l.rest = bytes.Clone(l.rest[i+1:])
	}
	if len(l.rest) > MaxLog {
		l.rest = nil // an endless line is not a log
	}
	return len(p), nil
}

func (l *logWriter) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		l.append(append(l.rest, '\n'))
		l.rest = nil
	}
}

// append loses lines rather than fail the command that printed them.
func (l *logWriter) append(b []byte) {
	f, err := os.OpenFile(l.v.logPath(l.ref), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return // the object is gone
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size()+int64(len(b)) > MaxLog {
		_ = f.Truncate(0)
	}
	_, _ = f.Write(b)
}

// Logs returns the last tail lines (0 = all) that an object's commands printed; with follow it continues
// until ctx or the object ends.
func (c *Client) Logs(ctx context.Context, ref string, tail int, follow bool) (io.ReadCloser, error) {
	root, _, err := c.tree(ctx, OpLogs, ref)
	if err != nil {
		return nil, err
	}
	_ = root.Close()
	b, err := os.ReadFile(c.v.logPath(ref))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	first := lastLines(b, tail)
	if !follow {
		return io.NopCloser(bytes.NewReader(first)), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	pr, pw := io.Pipe()
	f := &follower{PipeReader: pr, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		_, err := pw.Write(first)
		if err == nil {
			err = c.v.follow(ctx, ref, int64(len(b)), pw)
		}
		_ = pw.CloseWithError(err)
	}()
	return f, nil
}

type follower struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   chan struct{}
}

// Close stops following and waits until nothing is left running.
func (f *follower) Close() error {
	f.cancel()
	err := f.PipeReader.Close()
	<-f.done
	return err
}

func (v *Vendor) follow(ctx context.Context, ref string, from int64, w io.Writer) error {
	const interval = 20 * time.Millisecond
	for {
		if err := sleep(ctx, interval); err != nil {
			return nil
		}
		if _, err := os.Stat(v.home(ref)); err != nil {
			return nil // the object has ended
		}
		f, err := os.Open(v.logPath(ref))
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Size() < from {
			from = 0
		}
		n, err := io.Copy(w, io.NewSectionReader(f, from, MaxLog))
		_ = f.Close()
		if err != nil {
			return err
		}
		from += n
	}
}

func lastLines(b []byte, n int) []byte {
	if n <= 0 {
		return b
	}
	end := len(bytes.TrimSuffix(b, []byte("\n")))
	for i := end; i > 0; i-- {
		if b[i-1] == '\n' {
			if n--; n == 0 {
				return b[i:]
			}
		}
	}
	return b
}
