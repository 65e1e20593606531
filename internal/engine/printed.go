package engine

import (
	"slices"
	"strings"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Bounds of a command's output in a message.
const (
	tailKept  = 192 << 10 // bytes: more than what is shown and the longest secret, so that none is cut before it is hidden
	tailShown = 4000      // bytes
	tailLines = 30
)

// tail keeps the end of what a command prints.
type tail struct {
	mu   sync.Mutex // what could not start a command says so on a stream of its own
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*tailKept {
		t.kept = slices.Clone(t.kept[len(t.kept)-tailKept:])
	}
	return len(p), nil
}

// lines is the end of the output as part of a message, with the secrets
// hidden and nothing in it that a terminal would obey; "" where there is none.
func (t *tail) lines(hide func(string) string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimRight(hide(string(t.kept)), " \t\r\n")
	if len(text) > tailShown {
		text = text[len(text)-tailShown:]
		if _, rest, cut := strings.Cut(text, "\n"); cut {
			text = rest
		}
	}
	var b strings.Builder
	all := strings.Split(strings.ToValidUTF8(text, "\ufffd"), "\n")
	for _, l := range all[max(len(all)-tailLines, 0):] {
		if l = strings.TrimSpace(extensions.Clean(strings.TrimRight(l, "\r"), 400)); l != "" {
			b.WriteString("\n  " + l)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return printed + b.String()
}

// printed comes between a message and what a command printed.
const printed = "; the last lines it printed:"

// reasonOf is an error as ledgers and states keep it: without what a command
// printed, which is for who is there to read it.
func reasonOf(err error) string {
	text, _, _ := strings.Cut(err.Error(), printed)
	return extensions.Clean(text, 500)
}
