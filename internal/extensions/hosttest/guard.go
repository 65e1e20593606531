package hosttest

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// guardScript ends what hosts are left with after their tests were killed.
//
//go:embed guard.sh
var guardScript string

// guarded has the host in dir ended even if this process is killed, when no cleanup runs: its sandboxes would live to their
// deadline.
func guarded(t testing.TB, dir string) {
	t.Helper()
	to, err := guard()
	if err == nil {
		_, err = io.WriteString(to, dir+"\n")
	}
	if err != nil {
		t.Fatalf("hosttest: starting the guard: %v", err)
	}
}

// guard starts the guard once; the guard's input ends with this process.
var guard = sync.OnceValues(func() (io.Writer, error) {
	// The script comes with the input: in arguments or environment, an Inventory would take it for a sandbox's.
	const begin = `read -r bytes; eval "$(dd bs=1 count="$bytes" 2>/dev/null)"`
	cmd := exec.Command("sh", "-c", begin) // it outlives all that could cancel it
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "DOCKER_HOST=" + os.Getenv("DOCKER_HOST")}
	ownSession(cmd)
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(to, "%d\n%s", len(guardScript), guardScript)
	return to, err
})
