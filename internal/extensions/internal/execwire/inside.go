package execwire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// Process is one program that a Transport starts in the sandbox, as User ("" = the sandbox's own).
type Process struct {
	Argv           []string
	User           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer // with TTY, only Stdout is used
	TTY            *extensions.TTY
}

// Transport runs a process to its end and returns its exit code. It starts the process wherever the place
// starts one, reads Stdin in the background, and ends the process's input with Stdin (a terminal's by ^D).
// When ctx ends it returns soon; the process may run on. An error says by its Kind that the process was
// certainly not started, or is KindIndeterminate.
type Transport func(ctx context.Context, p Process) (exit int, err error)

// Output runs a program that only tells something, without input, and returns what it prints on standard output. Its exit code
// says whether it could. What was not heard can be asked again: KindUnavailable.
func (t Transport) Output(ctx context.Context, argv ...string) (out string, exit int, err error) {
	var b bytes.Buffer
	exit, err = t(ctx, Process{Argv: argv, Stdin: bytes.NewReader(nil), Stdout: &b, Stderr: io.Discard})
	if extensions.IsKind(err, extensions.KindIndeterminate) {
		err = extensions.Errorf(extensions.KindUnavailable, "no answer from the sandbox: %w", err).WithRemedy("try again")
	}
	return b.String(), exit, err
}

// endOfText ends the input of a terminal.
const endOfText = 4

// Feed gives a process its input by send, in pieces of at most size bytes, which send may keep. After the end it ends that of a
// terminal, and that of another process by end. A process that has ended does not read, which is no failure.
func (p Process) Feed(size int, send func(piece []byte) error, end func()) {
	for {
		buf := make([]byte, size)
		n, err := p.Stdin.Read(buf)
		if n > 0 && send(buf[:n]) != nil {
			return
		}
		switch {
		case err == nil:
			continue
		case p.TTY != nil:
			_ = send([]byte{endOfText})
		case errors.Is(err, io.EOF):
			end()
		}
		return
	}
}

// Resized tells each new size of a process's terminal, if it has one that changes, until ctx ends.
func (p Process) Resized(ctx context.Context, tell func(rows, cols uint16)) {
	if p.TTY == nil || p.TTY.Resize == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case size, ok := <-p.TTY.Resize:
			if !ok {
				return
			}
			tell(size[0], size[1])
		}
	}
}

// notRead is bootstrap's exit code for an incomplete program.
const notRead = 97

// bootstrap is the command line of every command. It reads lines to one with a dot, decodes them and runs what
// they say; fewer lines run nothing. The shell reads byte by byte, so what follows is left for the command.
const bootstrap = `sbx_h=; while IFS= read -r sbx_l; do case $sbx_l in .) sbx_h=$(printf '%b.' "$sbx_h"); eval "${sbx_h%.}"; exit ;; ` +
	`*) sbx_h=$sbx_h$sbx_l ;; esac; done; exit 97`

// maxLine is the longest line sent to bootstrap, in bytes: a terminal takes no longer ones than 4095.
const maxLine = 1000

// Inside returns the Wire of a place whose transport starts processes in the sandbox. base is where relative
// folders begin, absolute; "" = where the transport starts a process.
func Inside(base string, transport Transport) Wire {
	return Wire{
		Quiet: true,
		Start: func(ctx context.Context, s *Session) error { return start(ctx, s, base, transport) },
		Stop: func(ctx context.Context, s *Session) {
			head := program(map[string]string{"sbx_channel": NewNonce(), "sbx_mark": s.Mark, "sbx_cancel": "1"}, nil, nil)
			_, _ = transport(ctx, Process{Argv: argv(), User: s.Request.User, Stdin: strings.NewReader(head), Stdout: io.Discard,
				Stderr: io.Discard})
		},
	}
}

func argv() []string { return []string{"/bin/sh", "-c", bootstrap} }

// start runs the program inside and explains why it did not begin.
func start(ctx context.Context, s *Session, base string, transport Transport) error {
	if err := speakable(s.Request.Env); err != nil {
		return err
	}
	dir := s.Request.Dir
	if dir != "" || base != "" {
		if dir = path.Join(base, dir); strings.HasPrefix(s.Request.Dir, "/") {
			dir = s.Request.Dir
		}
		if !strings.HasPrefix(dir, "/") {
			return extensions.Errorf(extensions.KindUnsupported, "this place has no workspace for the relative folder %q",
				extensions.Clean(dir, 200)).At("dir").WithRemedy("give an absolute path")
		}
	}
	limit, up := s.Limit()
	in := &handing{head: program(map[string]string{"sbx_channel": s.Channel, "sbx_mark": s.Mark, "sbx_cancel": "", "sbx_dir": dir,
		"sbx_limit": limit, "sbx_limit_up": up, "sbx_terminal": map[bool]string{true: "1"}[s.Request.TTY != nil]},
		s.Request.Env, s.Request.Argv()), rest: s.Request.Stdin}
	exit, err := transport(ctx, Process{Argv: argv(), User: s.Request.User, Stdin: in, Stdout: s.Stdout, Stderr: s.Stderr, TTY: s.Request.TTY})
	switch kind := extensions.KindOf(err); {
	case err == nil:
		return s.streams.notBegun(exit)
	case in.handed.Load() && !errors.Is(err, errNotStarted) && (kind == extensions.KindUnreachable || kind == extensions.KindUnavailable):
		return Broken(err)
	}
	return err
}

// Broken is the error of a command that runs on, or does not, or never began.
func Broken(err error) error {
	return extensions.Errorf(extensions.KindIndeterminate, "the connection broke after the command may have started: %w", err).
		WithRemedy("check whether it ran before you run it again")
}

// notBegun explains a program that ended with exit before it started the command; nil if it did start it.
func (t *streams) notBegun(exit int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.began || t.refused {
		return nil
	}
	said := extensions.LastLines(t.gates[1].before(), 500)
	if said == "" {
		said = "it said nothing"
	}
	switch exit {
	case 126, 127:
		return extensions.Errorf(extensions.KindUnsupported, "the sandbox has no shell that could start the command: "+
			"/bin/sh ended with code %d: %s", exit, said).
			WithRemedy("use an image with a POSIX shell as /bin/sh; it needs nothing else")
	case notRead:
		said = "the command did not arrive completely"
	}
	return extensions.Errorf(extensions.KindUnavailable, "the sandbox's shell ended with code %d before it started the command: %s",
		exit, said).
		WithRemedy("try again; check the sandbox's memory, its number of processes and its /bin/sh")
}

// handing is the program, then the command's own input.
type handing struct {
	head   string
	rest   io.Reader // nil = empty
	handed atomic.Bool
}

func (h *handing) Read(p []byte) (int, error) {
	if h.head != "" {
		n := copy(p, h.head)
		if h.head = h.head[n:]; h.head == "" {
			h.handed.Store(true)
		}
		return n, nil
	}
	if h.rest == nil {
		return 0, io.EOF
	}
	return h.rest.Read(p)
}

var (
	shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// fixed are variables that a shell does not let others set.
	fixed = []string{"BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"}
)

// speakable refuses variables that a shell cannot hold.
func speakable(env map[string]string) error {
	for name := range env {
		if !shellName.MatchString(name) || slices.Contains(fixed, name) {
			return extensions.Errorf(extensions.KindUnsupported, "the variable %s cannot be set by a shell", extensions.Clean(name, 80)).
				At("env").WithRemedy("choose a name of letters, digits and underscores, or set it inside by `env`")
		}
	}
	return nil
}

// program returns what bootstrap reads: variables of the program, the command's own, and the program.
func program(vars, env map[string]string, command []string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(&b, "%s=%s\n", name, shtext.Quote(vars[name]))
	}
	b.WriteString("sbx_environment() {\n:\n")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "export %s=%s\n", name, shtext.Quote(env[name]))
	}
	b.WriteString("}\nset --")
	for _, word := range command {
		b.WriteString(" " + shtext.Quote(word))
	}
	b.WriteString("\n" + shtext.Join([]*shtext.Files{Scripts}, "frame", "watch", "kill", "command"))
	return lines(b.String())
}

// lines encodes text for bootstrap in short lines, and ends it.
func lines(text string) string {
	var b strings.Builder
	at := 0
	for i := range len(text) {
		word := printable(text[i])
		if at += len(word); at > maxLine {
			b.WriteByte('\n')
			at = len(word)
		}
		b.WriteString(word)
	}
	return b.String() + "\n.\n"
}

// encoded is text for printf's %b, of printable characters.
func encoded(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString(printable(text[i]))
	}
	return b.String()
}

func printable(c byte) string {
	switch {
	case c == '\n':
		return `\n`
	case c == '\\':
		return `\\`
	case c < ' ' || c > '~':
		return `\0` + fmt.Sprintf("%03s", strconv.FormatUint(uint64(c), 8))
	}
	return string(rune(c))
}
