package life

import (
	"slices"
	"strings"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits of a command's output in a message.
const (
	tailKept  = 192 << 10 // bytes: more than is shown plus the longest secret, so that no secret is cut before it is hidden
	tailShown = 4000      // bytes
	tailLines = 30
)

// tail keeps the end of a command's output.
type tail struct {
	mu   sync.Mutex // an error to start a command comes on a stream of its own
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

// lines returns the end of the output for a message, with secrets hidden and without terminal control
// characters; "" if there is none.
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

// printed separates a message from a command's output.
const printed = "; the last lines it printed:"

// reasonOf returns an error as ledgers and states keep it: without command output, which is for whoever is
// there to read it.
func reasonOf(err error) string {
	text, _, _ := strings.Cut(err.Error(), printed)
	return extensions.Clean(text, 500)
}
