package execwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// Calls is what a place offers that carries no streams: whole files, and short programs that it runs to their end.
// Its Transport uploads the input, starts the command beside the call that starts it, and fetches what the command
// wrote, byte for byte. Command lines have a folder's random name and numbers, nothing of the command, its variables
// or its output.
//
// The sandbox needs the usual small programs (head, mkdir, mv, rm, sleep, tail, wc) and a /tmp.
type Calls struct {
	// Put writes files, readable by the sandbox's own user, over those of before. Content may be longer than memory.
	Put func(ctx context.Context, files ...File) error
	// Get writes a file to w.
	Get func(ctx context.Context, path string, w io.Writer) error
	// Run runs a program as the user ("" = the sandbox's own) and returns its exit code and what it printed, a line of
	// ASCII perhaps among others. It takes up to Look. A user whom the place cannot give is KindUnsupported. An error
	// says by its Kind that the program was certainly not started, or is KindIndeterminate.
	Run func(ctx context.Context, user string, argv ...string) (exit int, printed string, err error)
	// MaxInput is the longest input, in bytes; 0 = MaxUpload.
	MaxInput int64
	// Patience is how long calls may fail in a row once the command may run; 0 = 30 s.
	Patience time.Duration
}

// File is one file of Put; its path is absolute and ASCII.
type File struct {
	Path    string
	Content io.Reader
}

const (
	// MaxUpload is how long a command's input may be by default, in bytes.
	MaxUpload = 64 << 20
	// Look is how long one call of Run may take, with time to spare.
	Look = 60 * time.Second
	// maxNews is what one look brings of each stream at most, in bytes.
	maxNews = 4 << 20
	// patience is the default of Calls.Patience.
	patience = 30 * time.Second
)

// Exit codes of upload.sh.
const (
	lacksTools = 98
	lacksRoom  = 99
)

// gone is said in place of an exit code where the command ended without one.
const gone = "?"

// errGone ends the wait for a command that is gone, which cannot be told from one that is not heard for a while by its Kind.
var errGone = extensions.Errorf(extensions.KindIndeterminate, "the command is gone without an exit code: the sandbox was restarted, or "+
	"killed it").WithRemedy("check what it did before you run it again")

// errNotStarted marks an error that came before the command could begin, whatever was read of its input.
var errNotStarted = errors.New("the command was not started")

// Transport is a Transport without terminals. It reads the whole input before the process starts; more than MaxInput is
// KindInvalid.
func (c Calls) Transport(ctx context.Context, p Process) (int, error) {
	if p.TTY != nil {
		return 0, extensions.Errorf(extensions.KindUnsupported, "this place has no terminals").At("tty").WithRemedy("run it without a terminal")
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	u := upload{Calls: c, nonce: NewNonce(), p: p}
	u.room = "/tmp/.sandboxer-" + u.nonce
	defer u.remove(ctx)
	if err := u.bring(ctx); err != nil {
		return 0, err
	}
	return u.follow(ctx)
}

// upload is one process under way.
type upload struct {
	Calls
	p     Process
	nonce string
	room  string // the folder
	seen  [2]int64
}

// bring makes the folder with the input and the program.
func (u *upload) bring(ctx context.Context) error {
	exit, _, err := u.Run(ctx, "", "mkdir", "-m", "700", u.room)
	switch {
	case err != nil:
		return notStarted(err)
	case exit == 126, exit == 127:
		return lacking()
	case exit != 0:
		return extensions.Errorf(extensions.KindUnavailable, "the sandbox cannot create the folder %s: mkdir ended with code %d: %w",
			u.room, exit, errNotStarted).WithRemedy("check the sandbox's disk and its /tmp")
	}
	var words strings.Builder
	for _, word := range u.p.Argv {
		words.WriteString(" " + shtext.Quote(word))
	}
	program := "sbx_argv=" + shtext.Quote(encoded(words.String())) + "\n" + shtext.Join([]*shtext.Files{Scripts}, "upload")
	most := u.MaxInput
	if most == 0 {
		most = MaxUpload
	}
	var in io.Reader = bytes.NewReader(nil)
	if u.p.Stdin != nil {
		in = u.p.Stdin
	}
	input := &bounded{from: in}
	input.left.Store(most)
	err = u.Put(ctx, File{Path: u.room + "/do", Content: strings.NewReader(program)}, File{Path: u.room + "/in", Content: input})
	if input.end() {
		return extensions.Errorf(extensions.KindInvalid, "the input is larger than %d MiB, and this place does not stream input", most>>20).
			WithRemedy("copy it in as a file first, and let the command read the file")
	}
	return notStarted(err)
}

// notStarted is the error of a call before the process could start: whatever became of that call, nothing ran.
func notStarted(err error) error {
	if extensions.IsKind(err, extensions.KindIndeterminate) {
		return extensions.Errorf(extensions.KindUnavailable, "%w: %w", errNotStarted, err)
	}
	if kind := extensions.KindOf(err); kind == extensions.KindUnavailable || kind == extensions.KindUnreachable {
		return extensions.Errorf(kind, "%w: %w", errNotStarted, err).WithRemedy("%s", extensions.RemedyOf(err))
	}
	return err
}

// follow starts the process and passes on what it prints until it has ended.
func (u *upload) follow(ctx context.Context) (int, error) {
	last, pause := u.Patience, time.Second
	if last == 0 {
		last = patience
	}
	begun := false
	heard := time.Now()
	for {
		exit, ended, err := u.look(ctx)
		kind := extensions.KindOf(err)
		begun = begun || err == nil || kind == extensions.KindIndeterminate
		switch {
		case err == nil && ended:
			return exit, nil
		case err == nil:
			heard, pause = time.Now(), time.Second
			continue
		case errors.Is(err, errGone):
			return 0, err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case !begun:
			return 0, notStarted(err)
		case kind != extensions.KindIndeterminate && kind != extensions.KindUnavailable && kind != extensions.KindUnreachable,
			time.Since(heard) > last:
			return 0, extensions.Errorf(extensions.KindIndeterminate, "the command's outcome cannot be read: %w", err).
				WithRemedy("check whether it ran before you run it again")
		}
		var told *extensions.Error
		if errors.As(err, &told) {
			pause = max(pause, told.RetryAfter)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// look passes on what is new; ended says that the process has, and that all it printed has come.
func (u *upload) look(ctx context.Context) (exit int, ended bool, err error) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	code, printed, err := u.Run(ctx, u.p.User, "/bin/sh", u.room+"/do", u.nonce, number(u.seen[0]), number(u.seen[1]), number(maxNews))
	if err != nil {
		return 0, false, err
	}
	first, both, said, err := u.told(code, printed)
	if err != nil {
		return 0, false, err
	}
	if both > 0 {
		var news bytes.Buffer
		if err := u.Get(ctx, u.room+"/more", &news); err != nil {
			return 0, false, err
		}
		if int64(news.Len()) != both {
			return 0, false, extensions.Errorf(extensions.KindIndeterminate, "the command's output broke off")
		}
		_, _ = u.p.Stdout.Write(news.Bytes()[:first]) // both writers keep what they can; neither fails
		_, _ = u.p.Stderr.Write(news.Bytes()[first:])
		u.seen[0] += first
		u.seen[1] += both - first
	}
	if said == "-" || first == maxNews || both-first == maxNews {
		return 0, false, nil
	}
	if said == gone {
		return 0, false, errGone
	}
	exit, err = strconv.Atoi(said)
	return exit, err == nil, err
}

// told reads the line of upload.sh: the ends of what is new of each stream, and the exit code.
func (u *upload) told(code int, printed string) (first, both int64, exit string, err error) {
	switch code {
	case lacksTools, 126, 127:
		return 0, 0, "", lacking()
	case lacksRoom:
		return 0, 0, "", extensions.Errorf(extensions.KindInternal, "the folder of the command is gone")
	}
	for line := range strings.Lines(printed) {
		if n, _ := fmt.Sscanf(line, u.nonce+" %d %d %s", &first, &both, &exit); n == 3 && first >= 0 && both >= first && both <= 2*maxNews {
			return first, both, exit, nil
		}
	}
	return 0, 0, "", extensions.Errorf(extensions.KindIndeterminate, "the sandbox's shell ended with code %d and reported nothing: %s", code,
		extensions.LastLines(printed, 300))
}

func lacking() error {
	return extensions.Errorf(extensions.KindUnsupported, "the image lacks programs that commands need here").
		WithRemedy("use an image with a shell, head, mkdir, mv, rm, sleep, tail and wc")
}

// remove clears the folder away, whatever became of the process.
func (u *upload) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
	defer cancel()
	_, _, _ = u.Run(ctx, "", "rm", "-rf", u.room) // it ends with the sandbox otherwise
}

// bounded fails after so many bytes. A call that fails can end while its input is still read.
type bounded struct {
	from io.Reader
	left atomic.Int64
}

var errTooLong = errors.New("the input is too long")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left.Load() < 0 {
		return 0, errTooLong
	}
	n, err := b.from.Read(p)
	if b.left.Add(-int64(n)) < 0 {
		return 0, errTooLong
	}
	return n, err
}

// end lets nothing more be read, and says whether there was too much.
func (b *bounded) end() bool { return b.left.Swap(-1) < 0 }
