package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/cli"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/all"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"sandboxer": func() {
			failpointtest.Arm()
			os.Exit(cli.Main(os.Args[1:], "1.2.3-test", all.Extensions()))
		},
		"mkevidence": func() { os.Exit(mkevidence()) },
		"mksandbox":  func() { os.Exit(mksandbox(os.Args[1:])) },
		"mksnapshot": func() { os.Exit(mksnapshot(os.Args[1:])) },
	})
}

// mksandbox PROFILE NAME TTL [JSON] makes a sandbox as Terraform would, from a request with what else the JSON says of
// it. It prints the id.
func mksandbox(args []string) int {
	e, err := engine.New(engine.Options{Extensions: all.Extensions(), Catalog: filepath.SplitList(os.Getenv("SANDBOXER_CATALOG"))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	req := engine.Request{Profile: args[0], Name: args[1], TTL: args[2]}
	if len(args) > 3 {
		err = json.Unmarshal([]byte(args[3]), &req)
	}
	var s engine.Sandbox
	if err == nil {
		s, err = e.Create(context.Background(), req, nil, nil)
	}
	if err := errors.Join(err, e.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.ID)
	return 0
}

// mksnapshot SANDBOX NAME [RETENTION] keeps one as Terraform would. It prints the id.
func mksnapshot(args []string) int {
	e, err := engine.New(engine.Options{Extensions: all.Extensions(), Catalog: filepath.SplitList(os.Getenv("SANDBOXER_CATALOG"))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	req := engine.SnapshotRequest{Name: args[1]}
	if len(args) > 2 {
		req.Retention = args[2]
	}
	of, err := e.Lookup(context.Background(), "", "", args[0])
	var s engine.SnapshotView
	if err == nil {
		s, err = e.Snapshot(context.Background(), of.Receipt, req)
	}
	if err := errors.Join(err, e.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.ID)
	return 0
}

// mkevidence keeps what shows a later change of the ledger: the events in
// events.ndjson, the head in head, and in terraform.tfstate the receipt of the
// sandbox "one" as Terraform keeps it.
func mkevidence() int {
	e, err := engine.New(engine.Options{Extensions: all.Extensions(), Catalog: filepath.SplitList(os.Getenv("SANDBOXER_CATALOG"))})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	s, err1 := e.Lookup(ctx, "", "", "one")
	events, err2 := e.Events(ctx, "", 0)
	v, err3 := e.Verify(ctx, engine.Evidence{})
	if err := errors.Join(err1, err2, err3, e.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var lines strings.Builder
	for _, ev := range events {
		fmt.Fprintln(&lines, ev.Data)
	}
	s.Receipt.Ledger, s.Receipt.Head = v.Ledger, v.Heads[0] // as a change leaves them
	receipt, err1 := json.Marshal(s.Receipt)
	private, err2 := json.Marshal(map[string][]byte{"receipt": receipt, "incomplete": []byte("false")})
	type object = map[string]any
	state, err3 := json.Marshal(object{"version": 4, "resources": []object{
		{"mode": "managed", "type": "sandboxer_host", "instances": []object{{"private": nil}}},
		{"mode": "managed", "type": "sandboxer_sandbox", "instances": []object{{"attributes": object{"id": s.ID}, "private": private}}},
		{"mode": "data", "type": "sandboxer_quote", "instances": []object{{}}},
	}})
	err = errors.Join(err1, err2, err3, os.WriteFile("events.ndjson", []byte(lines.String()), 0o600),
		os.WriteFile("terraform.tfstate", state, 0o600),
		os.WriteFile("head", []byte(v.Heads[0]), 0o600))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: runs no scripts, whose every line is a process")
	}
	exttest.Alone(t)
	if signal.Ignored(syscall.SIGHUP) { // by nohup; a caught signal is not ignored by what we start
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			env.Setenv("SANDBOXER_STATE_DIR", filepath.Join(env.WorkDir, "state"))
			env.Setenv("SANDBOXER_CATALOG", filepath.Join(env.WorkDir, "catalog"))
			env.Defer(func() { destroyAll(t, env.Vars) })
			addReceivers(env)
			return os.MkdirAll(filepath.Join(env.WorkDir, "catalog"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "receiver": startReceiver, "answer": answer,
			"got": got},
		Condition: func(cond string) (bool, error) { return condition(cond) },
	})
}

// destroyAll leaves nothing running, whatever a script did.
func destroyAll(t *testing.T, vars []string) {
	run := func(args ...string) string {
		cmd := exec.Command("sandboxer", args...)
		cmd.Env = vars
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("cleaning up: sandboxer %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	lines := strings.Split(strings.TrimSpace(run("sandbox", "list")), "\n")
	for _, line := range lines[1:] {
		run("sandbox", "destroy", "--even-protected", strings.Fields(line)[0])
	}
}

// exits CODE COMMAND... runs the command and wants exactly that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func condition(cond string) (bool, error) {
	switch cond {
	case "walls":
		return runtime.GOOS == "linux", nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}
