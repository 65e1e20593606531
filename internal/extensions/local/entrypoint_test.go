//go:build linux

package local

import (
	"os"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/lease"
)

// An init ends with its entrypoint, and may do so before it has answered that it
// started it.
func TestAnEntrypointThatEndsBeforeTheAnswerWasStarted(t *testing.T) {
	t.Parallel()
	for reason, started := range map[string]bool{lease.ReasonExited: true, lease.ReasonRemoved: false, "": false} {
		b := settings{root: t.TempDir()}.box("sbx-aaaaaaaaaaaaaaaaaaaa")
		must(t, os.MkdirAll(b.dir, 0o700))
		must(t, b.write(record{State: stateMaking}))
		if reason != "" {
			f, err := os.Create(b.beside(endSuffix))
			must(t, err)
			must(t, lease.WriteTombstone(f, lease.Tombstone{EndedAt: time.Now(), Reason: reason, Exit: 3}))
			must(t, f.Close())
		}
		err := b.enter(t.Context(), extensions.Entrypoint{Mode: extensions.EntrypointArgv, Argv: []string{"false"}})
		if (err == nil) != started {
			t.Errorf("the init ended for %q: %v", reason, err)
		}
	}
}
