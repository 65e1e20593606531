//go:build unix

package initd

import (
	"fmt"
	"os"
)

// noteGroup adds a session to the file that a teardown reads when this
// process was killed and can end nothing by itself any more.
func (p *procs) noteGroup(pid int) {
	if p.cfg.Groups == "" {
		return
	}
	f, err := os.OpenFile(p.cfg.Groups, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%d\n", pid)
	_ = f.Close()
}
