package docker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

func TestAnEngineThatNeverAnswersHoldsNoCopyForever(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	var proofs []func()
	for _, path := range []string{"/tag?", "/rename?", "/pause"} {
		s := newSite(t)
		b := s.open(t)
		h := s.become(t, b, onImage(t, exttest.Spec(t, s.config)))
		before := len(s.residue(t))
		id, err := extensions.NewSnapshotID(nil)
		must(t, err)
		s.gate.answerInstead(path, silence)
		all.Go(func() { // each waits for as long as one call may take
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			end := time.AfterFunc(2*cleanupTime, s.gate.cut)
			_, err := b.Snapshot(ctx, h, extensions.SnapshotSpec{ID: id, Account: s.config.Account, CreatedAt: time.Now(),
				Kind: extensions.SnapshotFilesystem})
			if !end.Stop() || !extensions.MayBeDone(err) {
				t.Errorf("%s: %v", path, err)
			}
		})
		proofs = append(proofs, func() {
			if got := inside(t, b, h, "", "echo runs"); got != "runs" || len(s.residue(t)) != before {
				t.Errorf("%s: the source is %q; there is %q", path, got, s.residue(t))
			}
		})
	}
	all.Wait()
	for _, prove := range proofs {
		prove()
	}
}
