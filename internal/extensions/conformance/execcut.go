package conformance

import (
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// signal is closed by the first write.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func (s *signal) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.c) })
	return len(p), nil
}

// execCut: what may have run must not look as if it had not.
func execCut(e *env) {
	_, h, _ := e.ready()
	started := &signal{c: make(chan struct{})}
	e.h.CutExec(e.TB, e.cfg, h, started.c)
	_, err := e.execer().Exec(e.ctx(), h, extensions.ExecRequest{Shell: "printf x >>ran; echo started; sleep 3", Stdout: started})
	e.wantKind("exec whose connection breaks", err, extensions.KindIndeterminate)
	if got := e.sh(h, "cat ran"); got != "x" {
		e.Errorf("the command left %q, want one run", got)
	}
}
