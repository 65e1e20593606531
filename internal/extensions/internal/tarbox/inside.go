package tarbox

import (
	"bytes"
	"context"
	"io"
	"path"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// maxWords is what is kept of an archiver's complaints, their end, in bytes.
const maxWords = 6000

// At is a path inside a sandbox: a relative one begins at base, its workspace; "" = at the root.
func At(base, at string) string {
	if path.IsAbs(at) {
		return path.Clean(at)
	}
	return path.Join("/", base, at)
}

// Inside returns the Way of a place whose transport starts processes in the sandbox. at is absolute; where
// names the sandbox in messages.
func Inside(transport execwire.Transport, at, where string) Way {
	ended := func(exit int, words *tail) End {
		if exit == 126 || exit == 127 { // sh itself could not be started
			exit = noArchiver
		}
		return End{Exit: exit, Words: words.String(), Path: at, Where: where}
	}
	return Way{
		In: func(ctx context.Context, from io.Reader, begin func(Form)) (End, error) {
			var words tail
			ready := &cue{do: func() { begin(Form{}) }}
			exit, err := transport(ctx, execwire.Process{Argv: []string{"/bin/sh", "-c", Script("unpack"), "sh", at}, Stdin: from,
				Stdout: ready, Stderr: &words})
			return ended(exit, &words), err
		},
		Out: func(ctx context.Context, to io.Writer, filled bool, begin func(bool)) (End, error) {
			begin(false)
			var words tail
			holes, fill, sift := PackArguments(filled)
			exit, err := transport(ctx, execwire.Process{Argv: []string{"/bin/sh", "-c", Script("pack"), "sh", at, holes, fill, sift},
				Stdin: bytes.NewReader(nil), Stdout: to, Stderr: &words})
			return ended(exit, &words), err
		},
	}
}

// Whole is Inside for a transport that reads all input before it starts the process, as that of execwire.Calls does.
func Whole(transport execwire.Transport, at, where string) Way {
	w := Inside(transport, at, where)
	unpack := w.In
	w.In = func(ctx context.Context, from io.Reader, begin func(Form)) (End, error) {
		const look = "command -v tar >/dev/null 2>&1 && command -v mkdir >/dev/null 2>&1"
		_, exit, err := transport.Output(ctx, "/bin/sh", "-c", look)
		if err != nil || exit != 0 {
			return End{Exit: noArchiver, Path: at, Where: where}, err
		}
		begin(Form{})
		return unpack(ctx, from, begin)
	}
	return w
}

// cue acts at the first write.
type cue struct {
	once sync.Once
	do   func()
}

func (c *cue) Write(p []byte) (int, error) {
	c.once.Do(c.do)
	return len(p), nil
}

// tail keeps the end of a stream.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-maxWords):]
	return len(p), nil
}

// String returns the lines joined by "|".
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ReplaceAll(t.b, []byte("\n"), []byte("|")))
}
