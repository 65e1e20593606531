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

// guardEnv makes a test binary the guard of the binary that started it.
const guardEnv = "SANDBOXER_TEST_GUARD"

// GuardMain turns this process into the guard if Guard started it, and then never returns. The guard has its
// own session, waits until the tests' process has ended for any reason, and ends what x still runs below the
// folders it was given; otherwise a killed test's sandboxes would live to their deadline. TestMain calls
// GuardMain before anything else.
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

// Guard ends the sandboxes below a state folder if this process is killed.
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

// guard starts the guard once; the guard's input ends with this process.
var guard = sync.OnceValues(func() (io.Writer, error) {
	self := "/proc/self/exe" // works even if the user may not enter its folder
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
