// Package tarbox takes files in and out of a sandbox as tar streams. It checks each archive here, entry by
// entry, and writes it anew: on the way in before anything is unpacked, and on the way out because the
// sandbox may be hostile.
//
// A place fills in a Way. Inside is the Way of a place whose transport starts processes in the sandbox: the
// archiver is the image's own, so it sees what a command sees, writes as the sandbox's user and cannot leave
// the sandbox, whatever links it follows. A place may have another Way for images without tar and sh.
package tarbox

import (
	"context"
	"embed"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

//go:embed sh/*.sh
var shellFiles embed.FS

// Scripts are the programs of this package.
var Scripts = &shtext.Files{FS: shellFiles}

// Way is how one transfer reaches a place. Both return once nothing reads or writes the stream any more.
type Way struct {
	// In unpacks what it reads. It calls begin once, when it knows how; nothing comes before that.
	In func(ctx context.Context, from io.Reader, begin func(Form)) (End, error)
	// Out prints archives, one after another. It calls begin once, perhaps after the first bytes; copied says
	// that the content of a folder is below a folder of its name. filled says that holes of files must not stay
	// holes.
	Out func(ctx context.Context, to io.Writer, filled bool, begin func(copied bool)) (End, error)
}

// End is the end of a transfer that took place.
type End struct {
	Exit        int    // the archiver's code, or one of those below
	Words       string // what it printed on standard error, as lines or separated by "|"
	Path, Where string // for messages: the path inside, and in what
}

// Codes of the scripts that are no archiver's.
const (
	noArchiver = 43
	noPath     = 44
	noEntry    = 45
)

// ErrNoArchiver says that an image has no tar and sh. Of an upload, nothing was read then.
var ErrNoArchiver = errors.New("the image has no tar and sh")

// errEnded tells the other side that nobody reads any more.
var errEnded = errors.New("the transfer has ended")

// Upload implements extensions.FileTransfer by w.
func Upload(ctx context.Context, archive io.Reader, w Way) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	first := make(chan Form, 1)
	filtered := make(chan error, 1)
	go func() {
		filtered <- send(ctx, first, archive, out)
		_ = out.Close()
	}()
	end, err := w.In(ctx, in, func(f Form) { offer(first, f) })
	// A source that blocks is its owner's concern; do not wait for it.
	_ = in.CloseWithError(errEnded)
	cancel()
	select {
	case bad := <-filtered:
		if bad != nil && !errors.Is(bad, errEnded) && !errors.Is(bad, context.Canceled) {
			return bad
		}
	default:
	}
	if err != nil || end.Exit == 0 {
		return err
	}
	return end.refused()
}

// send passes the archive on once the place has said how it will receive it.
func send(ctx context.Context, first <-chan Form, archive io.Reader, out io.Writer) error {
	select {
	case f := <-first:
		return refill(ctx, archive, out, f)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func offer[T any](to chan T, v T) {
	select {
	case to <- v:
	default:
	}
}

// Download implements extensions.FileTransfer by w.
func Download(ctx context.Context, to io.Writer, w Way) error {
	t := newTaking(ctx, to)
	err := take(ctx, t, w, false)
	if t.holed {
		t.again()
		err = take(ctx, t, w, true)
	}
	if err != nil {
		return err
	}
	if err := t.close(); err != nil {
		return t.unwritten(err)
	}
	return t.incomplete()
}

// take passes the archives that w prints to t.
func take(ctx context.Context, t *taking, w Way, filled bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	heard := newBeginning()
	read := make(chan error, 1)
	go func() {
		err := t.read(in, heard.copied)
		_ = in.CloseWithError(errEnded) // a refused archive ends the transfer
		read <- err
	}()
	end, err := w.Out(ctx, out, filled, func(copied bool) { offer(heard.first, copied) })
	close(heard.ended)
	_ = out.Close()
	bad := <-read
	if bad != nil && (err == nil || errors.Is(err, errEnded) || t.broken) {
		return bad
	}
	if err != nil {
		return err
	}
	return t.judge(end, heard.copied())
}

// beginning is what a place says of an archive that it sends, which may come after the archive's start.
type beginning struct {
	first  chan bool
	ended  chan struct{} // closed once nothing more will come
	copied func() bool   // waits for it
}

func newBeginning() *beginning {
	b := &beginning{first: make(chan bool, 1), ended: make(chan struct{})}
	b.copied = sync.OnceValue(func() bool {
		select {
		case copied := <-b.first:
			return copied
		case <-b.ended:
		}
		select {
		case copied := <-b.first:
			return copied
		default:
			return false
		}
	})
	return b
}

// judge returns the error of an archiver's end; an archive that lacks something is not one.
func (t *taking) judge(end End, copied bool) error {
	switch {
	case end.Exit == 0:
		return nil
	case copied, end.Exit == noArchiver, end.Exit == noPath, end.Exit == noEntry:
		return end.refused()
	case t.ended && harmless(end.Words):
		return nil
	case t.ended && end.Exit <= 2: // the archivers' own codes; the archive continues after what they could not read
		t.lacks.More, t.lacks.Why = true, extensions.Clean(end.Words, 4000)
		return nil
	}
	return extensions.Errorf(extensions.KindUnavailable, "the archiver in %s ended with code %d: %s", end.Where, end.Exit,
		extensions.Clean(end.Words, 400)).
		WithRemedy("check the memory there and its user's permissions")
}

// harmless reports whether an archiver complained only about files that changed while it read them.
func harmless(words string) bool {
	for line := range strings.SplitSeq(words, "|") { // as scripts join them
		line = strings.TrimSpace(line)
		ours := false
		for _, end := range []string{"file changed as we read it", "File removed before we read it", "socket ignored",
			"Exiting with failure status due to previous errors"} {
			ours = ours || strings.HasSuffix(line, end)
		}
		if !ours && line != "" {
			return false
		}
	}
	return words != ""
}

// archiverWords are what archivers and docker cp say, in the order to look for it, with its meaning.
var archiverWords = []struct {
	words           []string // any of them
	kind            extensions.Kind
	message, remedy string
}{
	{[]string{"ead-only"}, extensions.KindConflict, "cannot be written: it is read-only",
		"write to another folder, or give the workspace access: rw"},
	{[]string{"o space left", "quota exceeded"}, extensions.KindExhausted, "cannot be written", "free some disk space on the host"},
	{[]string{"ermission denied", "not permitted"}, extensions.KindUnauthorized, "is not open to the sandbox's user",
		"choose a folder that this user may use"},
	{[]string{"ot a directory", "ile exists", "s a directory", "annot overwrite"}, extensions.KindConflict, "has something in the way",
		"remove it first, or use another folder"},
	{[]string{"o such file", "ould not find"}, extensions.KindNotFound, "does not exist",
		"check the path; a relative one is below the workspace"},
}

// refused returns the error of a transfer that failed as a whole.
func (e End) refused() error {
	at := extensions.Clean(e.Path, 400) + " in " + e.Where
	switch e.Exit {
	case noArchiver:
		return extensions.Errorf(extensions.KindUnsupported, "files cannot be copied into or out of %s: %w", e.Where, ErrNoArchiver).
			WithRemedy("use an image with tar and sh")
	case noPath:
		return extensions.Errorf(extensions.KindNotFound, "there is no %s", at).
			WithRemedy("check the path; a relative one is below the workspace")
	case noEntry:
		return extensions.Errorf(extensions.KindUnauthorized, "%s is not open to the sandbox's user", at).
			WithRemedy("choose a folder that this user may use")
	}
	detail := extensions.LastLines(e.Words, 2500)
	if detail != "" {
		detail = ": " + detail
	}
	for _, a := range archiverWords {
		for _, w := range a.words {
			if strings.Contains(e.Words, w) {
				return extensions.Errorf(a.kind, "%s %s%s", at, a.message, detail).WithRemedy("%s", a.remedy)
			}
		}
	}
	return extensions.Errorf(extensions.KindUnavailable, "the transfer to or from %s failed with code %d%s", at, e.Exit, detail).
		WithRemedy("check the sandbox, then try again")
}

// PackArguments are those of the script pack after the path.
func PackArguments(filled bool) (holes, fill, sift string) {
	holes = "kept"
	if filled {
		holes = "filled"
	}
	return holes, strconv.FormatInt(MaxFilled, 10), shtext.Join([]*shtext.Files{Scripts}, "sift")
}

// Script returns one of the operations inside, unpack or pack, for sh -c.
func Script(name string) string { return shtext.Join([]*shtext.Files{Scripts}, name) }
