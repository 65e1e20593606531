package remote

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// bootstrap is the command line of every exec. It reads two equal numbers, so that a partly consumed line is
// noticed, then that many bytes, and runs them; fewer bytes run nothing. A pipe returns what it has, and not
// every dd can wait for all, hence the loop; sh reads ahead only within its own lines. In single quotes without
// backslash, exclamation mark or newline it means the same to dash, bash, ash, zsh, fish, csh and tcsh. The
// locale is bytewise from sh's start, or ${#c} would count characters.
const bootstrap = `exec env LC_ALL=C sh -c 'read -r n m; [ "$n" = "$m" ] || exit 97; s=; ` +
	`while [ "$n" -gt 0 ]; do c=$(dd bs="$n" count=1 iflag=fullblock 2>/dev/null || dd bs="$n" count=1 2>/dev/null; echo .); ` +
	`c=${c%.}; [ -n "$c" ] || exit 97; ` +
	`n=$((n-${#c})); s=$s$c; done; eval "$s"'`

// notRead is bootstrap's exit code for an incomplete script.
const notRead = 97

//go:embed prelude.sh
var prelude string

// preamble is the prelude as sent, with json_string's escapes.
var preamble = "_sbx_sed=" + shtext.Quote(sedProgram()) + "\n" + withoutComments(prelude)

func sedProgram() string {
	var b strings.Builder
	b.WriteString(`s/\\/\\\\/g` + "\n" + `s/"/\\"/g` + "\n")
	for c := 1; c < 0x20; c++ {
		if c != '\n' {
			fmt.Fprintf(&b, "s/%c/\\\\u%04x/g\n", c, c)
		}
	}
	b.WriteString(`$!s/$/\\n/`)
	return b.String()
}

// withoutComments drops lines that are comments or empty; the prelude has no here-documents.
func withoutComments(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if t := strings.TrimSpace(line); t != "" && t[0] != '#' {
			b.WriteString(line)
		}
	}
	return b.String()
}

// searchPath is added to the PATH of sessions that are not logins.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"

// newMark returns a word that distinguishes our lines from all others.
func newMark() string { return "sbx-" + rand.Text() }

type framing struct {
	script string
	vars   map[string]string
	call   bool // with the prelude
	tty    bool
	raw    bool // a terminal that stays as the script came through it
}

// encode returns what goes to bootstrap's stdin before the payload.
func (f framing) encode(mark string) ([]byte, error) {
	if strings.ContainsRune(f.script, 0) {
		return nil, extensions.Errorf(extensions.KindInternal, "the script contains a NUL byte")
	}
	vars, err := assignments(f.vars)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	// The host assembles the mark: wherever the script itself is shown (by set -x, or a terminal's echo), the
	// mark is not.
	half := len(mark) / 2
	fmt.Fprintf(&b, "unset n m c s\n_sbx_t=%s\n_sbx_t=${_sbx_t}%s\n", mark[:half], mark[half:])
	fmt.Fprintf(&b, "PATH=${PATH:+$PATH:}%s\nexport PATH\n", searchPath)
	if f.call {
		// The script outlives its connection, so writing to nobody must not end it.
		b.WriteString("trap '' PIPE HUP\n")
		b.WriteString(preamble)
	}
	if f.tty && !f.raw { // the terminal was raw for the script's sake
		b.WriteString("stty sane 2>/dev/null\n")
	}
	b.WriteString("printf '%s %s\\n' \"$_sbx_t\" $$\n")
	if !f.tty {
		b.WriteString("printf '%s\\n' \"$_sbx_t\" >&2\n")
	}
	b.WriteString(vars)
	b.WriteString(f.script)
	b.WriteString("\n")
	return fmt.Appendf(nil, "%d %d\n%s", b.Len(), b.Len(), b.String()), nil
}

// maxNoise bounds what a host may print before a script begins, in bytes.
const maxNoise = 1 << 20

var errNoise = errors.New("the host prints too much before the script starts")

// maxPid bounds what follows the mark in its line, in bytes: a space, the process id of the script's sh, and
// a terminal's form of a newline.
const maxPid = 24

// opening drops what precedes the mark's line and passes on the rest.
type opening struct {
	mark    []byte
	next    func([]byte) error
	began   func(pid int) // called once, at the mark; pid is 0 if the line has none
	open    bool
	partial []byte // possible start of the mark
	noise   tail
	count   int
}

func newOpening(mark string, next func([]byte) error, began func(pid int)) *opening {
	return &opening{mark: []byte(mark), next: next, began: began}
}

func (o *opening) write(p []byte) error {
	if o.open {
		return o.next(p)
	}
	buf := append(o.partial, p...)
	if i := bytes.Index(buf, o.mark); i >= 0 {
		end := bytes.IndexByte(buf[i:], '\n')
		if end >= 0 {
			o.noise.write(buf[:i])
			o.open, o.partial = true, nil
			pid, _ := strconv.Atoi(strings.TrimSpace(string(buf[i+len(o.mark) : i+end])))
			o.began(pid)
			if rest := buf[i+end+1:]; len(rest) > 0 {
				return o.next(rest)
			}
			return nil
		}
		if len(buf)-i > len(o.mark)+maxPid {
			return errNoise
		}
	}
	keep := min(len(buf), len(o.mark)+maxPid)
	drop := buf[:len(buf)-keep]
	o.count += len(drop)
	o.noise.write(drop)
	o.partial = append([]byte(nil), buf[len(buf)-keep:]...)
	if o.count > maxNoise {
		return errNoise
	}
	return nil
}

// seen returns the end of what preceded the mark.
func (o *opening) seen() string { return o.noise.text() + string(o.partial) }

// tail keeps the end of a stream.
type tail struct{ b []byte }

// maxTail is what tail keeps, in bytes.
const maxTail = 8 << 10

func (t *tail) write(p []byte) {
	if len(p) > maxTail {
		p = p[len(p)-maxTail:]
	}
	if len(t.b)+len(p) > 2*maxTail {
		t.b = append(t.b[:0], t.b[len(t.b)-maxTail:]...)
	}
	t.b = append(t.b, p...)
}

func (t *tail) text() string {
	return string(t.b[max(0, len(t.b)-maxTail):])
}
