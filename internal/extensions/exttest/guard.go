package exttest

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// guardEnv makes a test binary the guard of the one that started it.
const guardEnv = "SANDBOXER_TEST_GUARD"

// GuardMain makes this process the guard, and never returns, where Guard
// started it: a process of its own session that waits until the tests' process
// ended, however that came about, and ends what x still runs below the folders
// it was told. A killed test's sandboxes would live to their deadline. TestMain
// calls it before anything else.
func GuardMain(x extensions.Extension, accounts ...string) {
	if os.Getenv(guardEnv) == "" {
		return
	}
	dirs := map[string]bool{}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		dirs[lines.Text()] = true
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for dir := range dirs {
		for _, account := range accounts {
			endAll(ctx, x, extensions.Config{Binding: "guard", Account: account, StateDir: dir})
		}
	}
	os.Exit(0)
}

func endAll(ctx context.Context, x extensions.Extension, cfg extensions.Config) {
	b, err := x.Open(ctx, cfg)
	if err != nil {
		return
	}
	defer func() { _ = b.Close() }()
	all, _ := b.Status(ctx, nil)
	for _, o := range all {
		_, _ = b.Teardown(ctx, o.Handle)
	}
}

// Guard has the sandboxes below a state folder ended if this process is killed.
func Guard(t testing.TB, stateDir string) {
	t.Helper()
	if err := GuardFolder(stateDir); err != nil {
		t.Fatalf("starting the guard: %v", err)
	}
}

// GuardFolder is Guard outside a test.
func GuardFolder(stateDir string) error {
	to, err := guard()
	if err == nil {
		_, err = io.WriteString(to, stateDir+"\n")
	}
	return err
}

// guard starts it once; its input ends with this process.
var guard = sync.OnceValues(func() (io.Writer, error) {
	self := "/proc/self/exe" // also for a user who may not enter the folder it lies in
	if _, err := os.Stat(self); err != nil {
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), guardEnv+"=1")
	cmd.SysProcAttr = ownSession()
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return to, cmd.Start()
})
