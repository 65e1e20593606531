package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/docker"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
)

// driverEnv makes the test binary a driver over the engine: it reads one
// order and carries it out, so that it can be killed at any point.
const driverEnv = "SANDBOXER_ENGINE_DRIVER"

type order struct {
	Dir, Profile string
	Do           string // create | rush | extend | pause | resume | snapshot | unkeep | recreate | destroy | sweep
	Snapshot     string // that an unkeep deletes, and a create restores
	Name         string
	Share        string // of a create: the share_key of a sandbox that several hold
	TTL          string // "" = 10m
	Receipt      engine.Receipt
	Ledger       string
	Catalog      []string
	Lease        time.Duration
	Count        int           // of a rush
	Fork         extensions.ID // what a create forks
	Logins       logins        // of the vendors that are places, by binding; nil = none is
	Docker       string        // the account of sandboxes in this machine's Docker; "" = it is no place
	Anywhere     string        // the folder of the machines of ext.anywhere; "" = it is no place
	Hosts        []string      // of a create
	DieAt        int64         // the byte of a snapshot on its way to another machine at which the process dies; 0 = never
}

// request is that of a create.
func (o order) request() engine.Request {
	req := engine.Request{Profile: o.Profile, Name: o.Name, TTL: cmp.Or(o.TTL, "10m"), FromSandbox: string(o.Fork), FromSnapshot: o.Snapshot,
		Hosts: o.Hosts}
	if o.Share != "" {
		req.Scope, req.ShareKey = "shared", o.Share
	}
	return req
}

func TestMain(m *testing.M) {
	exttest.GuardMain(local.New(), "acme/web")
	if text := os.Getenv(driverEnv); text != "" {
		failpointtest.Arm()
		os.Exit(drive(text))
	}
	// Most tests wait: for leases, for what is away, for processes.
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func drive(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	opts := engine.Options{Extensions: all(), StateDir: o.Dir, Account: "acme/web", Catalog: o.Catalog, Ledger: o.Ledger, Lease: o.Lease}
	if o.Docker != "" {
		opts.Extensions, opts.Account = append(opts.Extensions, docker.New()), o.Docker
	}
	if o.Logins != nil {
		rent(&opts, o.Logins)
	}
	if o.Anywhere != "" {
		opts.Extensions = append(opts.Extensions, anywhere{mortal(o.DieAt), o.Anywhere, nil})
	}
	e, err := engine.New(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer e.Close()
	switch o.Do {
	case "create":
		s, err := e.Create(context.Background(), o.request(), nil, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
		_ = json.NewEncoder(os.Stdout).Encode(s.Receipt)
	case "rush":
		o.rush(e)
	case "extend":
		ttl, err := time.ParseDuration(o.TTL)
		if err == nil {
			_, err = e.ExtendTTL(context.Background(), o.Receipt, ttl)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
	case "pause", "resume":
		mode := map[string]engine.Mode{"pause": engine.Paused, "resume": engine.Running}[o.Do]
		if _, err := e.SetMode(context.Background(), o.Receipt, mode, nil); err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
	case "sweep":
		if _, err := e.Sweep(context.Background(), false, nil); err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
	case "snapshot":
		if _, err := e.Snapshot(context.Background(), o.Receipt, engine.SnapshotRequest{Name: "kept", Retention: "30d", AllowEnd: true}); err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
	case "unkeep":
		snap, err := e.LookupSnapshot(context.Background(), o.Snapshot)
		if err == nil {
			_, err = e.DeleteSnapshot(context.Background(), snap, false)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
	case "recreate":
		if _, err := e.Recreate(context.Background(), o.Receipt, nil, nil); err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
	case "destroy":
		if _, err := e.Destroy(context.Background(), o.Receipt, engine.DestroyOptions{}); err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
	}
	return 0
}

// rush makes several at once and says what became of each.
func (o order) rush(e *engine.Engine) {
	var wg sync.WaitGroup
	for i := range o.Count {
		wg.Go(func() {
			_, err := e.Create(context.Background(), engine.Request{Profile: o.Profile, Name: fmt.Sprint(o.Name, "-", i), TTL: o.TTL}, nil, nil)
			if err != nil {
				fmt.Fprintf(os.Stderr, "refused %s %s\n", extensions.KindOf(err), err)
				return
			}
			fmt.Fprint(os.Stderr, "made\n")
		})
	}
	wg.Wait()
}

// startsProcesses is for a test that does so.
func startsProcesses(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
}

// takesLong is for a test that takes more than five seconds: it waits for deadlines or for what hangs, or tries every step.
func takesLong(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
}

// killing is for a test whose processes are killed, TestAKill…. They are many, the detector makes the start of each
// several times as long, and what is killed tells of no race.
func killing(t testing.TB) {
	t.Helper()
	startsProcesses(t)
	exttest.Alone(t)
}

// raceEnv keeps a process under the race detector from lasting a second longer,
// in which others of its goroutines might be caught.
const raceEnv = "GORACE=atexit_sleep_ms=10"

// driver is a process like b's that carries out one order. Where it says
// nothing of folder, profile and ledger, they are b's.
func (b *bench) driver(o order) *exec.Cmd {
	b.t.Helper()
	startsProcesses(b.t)
	o.Dir, o.Profile, o.Ledger = cmp.Or(o.Dir, b.StateDir), cmp.Or(o.Profile, b.profile), cmp.Or(o.Ledger, b.Ledger)
	o.Catalog, o.Lease, o.Docker = b.Catalog, b.Lease, b.account
	text, err := json.Marshal(o)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), driverEnv+"="+string(text), raceEnv)
	return cmd
}

// run carries out one order in its own process; killAfter > 0 ends it then.
func (b *bench) run(o order, env string, killAfter time.Duration) (rec engine.Receipt, stderr string, code int) {
	b.t.Helper()
	cmd := b.driver(o)
	cmd.Env = append(cmd.Env, env)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	if killAfter > 0 {
		timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	_ = json.NewDecoder(strings.NewReader(out.String())).Decode(&rec)
	return rec, errs.String(), cmd.ProcessState.ExitCode()
}

// killed carries out an order that dies at a point.
func (b *bench) killed(o order, point string) {
	b.t.Helper()
	if _, stderr, code := b.run(o, failpointtest.Env+"="+point+":kill", 0); code == 0 {
		b.t.Fatalf("%s: it did not die: %s", point, stderr)
	}
}

// again runs one order in a fresh engine of this process, which no one kills.
func (b *bench) again(o order) (rec engine.Receipt, err error) {
	b.t.Helper()
	e := b.reopen()
	defer e.Close()
	if o.Do == "destroy" {
		_, err = e.Destroy(context.Background(), o.Receipt, engine.DestroyOptions{})
		return rec, err
	}
	o.TTL = ""
	s, err := e.Create(context.Background(), o.request(), nil, nil)
	return s.Receipt, err
}
