package life

import (
	"sync"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/notice"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	// progressPause is the least time between two notices about the same subject.
	progressPause = 10 * time.Second
	// maxProgress bounds the notices of one create.
	maxProgress = 100
)

// progress turns what a place tells while it works into notices, of which people want few: each new subject, and the
// same one again after a while.
func progress(notify notice.Notify, now func() time.Time) extensions.ProgressFunc {
	var mu sync.Mutex
	var last string
	var at time.Time
	told := 0
	return func(subject, detail string) {
		mu.Lock()
		defer mu.Unlock()
		t := now()
		if told == maxProgress || subject == last && t.Sub(at) < progressPause {
			return
		}
		told++
		last, at = subject, t
		if notify != nil {
			notify(notice.Notice{Summary: subject, Detail: detail, Progress: true})
		}
	}
}
