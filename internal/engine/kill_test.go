package engine_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
)

// driverEnv makes the test binary a driver over the engine: it reads one
// order and carries it out, so that it can be killed at any point.
const driverEnv = "SANDBOXER_ENGINE_DRIVER"

type order struct {
	Dir, Profile string
	Do           string // create | rush | extend | snapshot | destroy | sweep
	Name         string
	TTL          string // "" = 10m
	Receipt      engine.Receipt
	Ledger       string // "" = the default
	Catalog      string // "" = that of testdata
	Lease        time.Duration
	Count        int // of a rush
}

func (o order) engine() (*engine.Engine, error) {
	return engine.New(engine.Options{Extensions: all(), StateDir: o.Dir, Account: "acme/web", Catalog: []string{cmp.Or(o.Catalog, "testdata/catalog")},
		Ledger: o.Ledger, Lease: o.Lease})
}

func TestMain(m *testing.M) {
	exttest.GuardMain(local.New(), "acme/web")
	if text := os.Getenv(driverEnv); text != "" {
		failpointtest.Arm()
		os.Exit(drive(text))
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
	e, err := o.engine()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer e.Close()
	switch o.Do {
	case "create":
		s, err := e.Create(context.Background(), engine.Request{Profile: o.Profile, Name: o.Name, TTL: cmp.Or(o.TTL, "10m")}, nil, nil)
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
	case "sweep":
		if _, err := e.Sweep(context.Background(), false, nil); err != nil {
			fmt.Fprintln(os.Stderr, extensions.KindOf(err), err, extensions.RemedyOf(err))
			return 1
		}
	case "snapshot":
		if _, err := e.Snapshot(context.Background(), o.Receipt, "kept"); err != nil {
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

// run carries out one order in its own process; killAfter > 0 ends it then.
func (b *bench) run(o order, env string, killAfter time.Duration) (rec engine.Receipt, stderr string, code int) {
	b.t.Helper()
	o.Dir = b.dir
	return run(b.t, o, env, killAfter)
}

func run(t *testing.T, o order, env string, killAfter time.Duration) (rec engine.Receipt, stderr string, code int) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), driverEnv+"="+string(text), env)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if killAfter > 0 {
		timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	_ = json.NewDecoder(bufio.NewReader(strings.NewReader(out.String()))).Decode(&rec)
	return rec, errs.String(), cmd.ProcessState.ExitCode()
}

// again runs one order in a fresh engine of this process, which no one kills.
func (b *bench) again(o order) (rec engine.Receipt, err error) {
	b.t.Helper()
	e, err := engine.New(engine.Options{Extensions: all(), StateDir: b.dir, Account: "acme/web", Catalog: []string{"testdata/catalog"}})
	if err != nil {
		b.t.Fatal(err)
	}
	defer e.Close()
	if o.Do == "destroy" {
		_, err = e.Destroy(context.Background(), o.Receipt, engine.DestroyOptions{})
		return rec, err
	}
	s, err := e.Create(context.Background(), engine.Request{Profile: o.Profile, Name: o.Name, TTL: "10m"}, nil, nil)
	return s.Receipt, err
}

// converge creates name again after a crash: it works, or the one sandbox
// that was finished and never told is named with its import, and taken by it.
func (b *bench) converge(profile, name string) engine.Receipt {
	b.t.Helper()
	rec, err := b.again(order{Do: "create", Profile: profile, Name: name})
	if err == nil {
		return rec
	}
	text := err.Error() + extensions.RemedyOf(err)
	if !strings.Contains(text, "import {") {
		b.t.Fatalf("the next run did not converge: %s", text)
	}
	s, err := b.reopen().Lookup(context.Background(), "", "", name)
	if err != nil || !strings.Contains(text, string(s.ID)) {
		b.t.Fatalf("import of %s: %v; the message was: %s", s.ID, err, text)
	}
	return s.Receipt
}

// expectHeld: the vendor was perhaps asked, and its list proves nothing. The
// name stays taken until the native deadline, and the message says so.
func (b *bench) expectHeld(profile, name string) {
	b.t.Helper()
	_, err := b.again(order{Do: "create", Profile: profile, Name: name})
	if !extensions.IsKind(err, extensions.KindIndeterminate) || !strings.Contains(extensions.RemedyOf(err), "at the latest") {
		b.t.Errorf("%v (%s)", err, extensions.RemedyOf(err))
	}
	if _, err := b.again(order{Do: "create", Profile: profile, Name: "other"}); err != nil {
		b.t.Errorf("another name: %v", err)
	}
	b.clean()
}

func (b *bench) expectOnly(rec engine.Receipt) {
	b.t.Helper()
	left := b.left()
	for wait := time.Now().Add(saasstub.Settle); len(left) == 0 && time.Now().Before(wait); left = b.left() {
		time.Sleep(50 * time.Millisecond) // an eventual list shows it in a moment
	}
	if len(left) != 1 || left[0] != string(rec.ID) {
		b.t.Errorf("the vendor holds %v, want %s alone", left, rec.ID)
	}
	got, err := b.reopen().Get(context.Background(), rec)
	if err != nil || got.State != "ready" {
		b.t.Errorf("after recovery: %+v, %v", got.State, err)
	}
	b.accounted()
	b.clean()
}

func TestAKillAtAnyStepOfCreateConverges(t *testing.T) {
	t.Parallel()
	for _, point := range append(failpointtest.Names("engine.create."), failpointtest.Names("ledger.")...) {
		for _, profile := range []string{"profile.stub", "profile.eventual", "profile.quickstart"} {
			if profile != "profile.stub" && !strings.HasPrefix(point, "engine.") {
				continue
			}
			t.Run(point+"/"+profile, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.fund()
				_, stderr, code := b.run(order{Do: "create", Profile: profile, Name: "one"}, failpointtest.Env+"="+point+":kill", 0)
				if code == 0 {
					t.Skipf("the create does not pass %s", point)
				}
				if strings.Contains(stderr, "panic") {
					t.Fatal(stderr)
				}
				if profile == "profile.eventual" && point == "engine.create.placed" {
					b.expectHeld(profile, "one")
					return
				}
				b.expectOnly(b.converge(profile, "one"))
			})
		}
	}
}

func TestAKillAtAnyStepOfDestroyConverges(t *testing.T) {
	t.Parallel()
	for _, point := range failpointtest.Names("engine.destroy.") {
		for _, profile := range []string{"profile.stub", "profile.quickstart"} {
			t.Run(point+"/"+profile, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.fund()
				rec := b.converge(profile, "one")
				b.run(order{Do: "destroy", Receipt: rec}, failpointtest.Env+"="+point+":kill", 0)
				if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
					t.Fatalf("the next destroy: %v", err)
				}
				if left := b.left(); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
				b.accounted()
				b.clean()
			})
		}
	}
}

func TestAHundredRandomKillsLeaveNoOrphanAndNoDuplicate(t *testing.T) {
	t.Parallel()
	rounds := 50
	if raced {
		rounds = 10
	}
	for _, profile := range []string{"profile.stub", "profile.quickstart"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.fund()
			start := time.Now() // of a process, so that kills spread over all of its life
			whole, stderr, code := b.run(order{Do: "create", Profile: profile, Name: "one"}, "", 0)
			span := time.Since(start)
			if code != 0 {
				t.Fatal(stderr)
			}
			if _, err := b.Destroy(context.Background(), whole, engine.DestroyOptions{}); err != nil {
				t.Fatal(err)
			}
			for i := range rounds {
				b.randomKills(i, profile, span)
			}
			b.accounted()
			b.clean()
		})
	}
}

// randomKills kills one create and one destroy at any moment of theirs.
func (b *bench) randomKills(round int, profile string, span time.Duration) {
	b.t.Helper()
	b.run(order{Do: "create", Profile: profile, Name: "one"}, "", time.Duration(rand.Int64N(int64(span)))+1)
	rec := b.converge(profile, "one")
	if left := b.left(); len(left) != 1 || left[0] != string(rec.ID) {
		b.t.Fatalf("round %d: there is %v, want %s alone", round, left, rec.ID)
	}
	b.run(order{Do: "destroy", Receipt: rec}, "", time.Duration(rand.Int64N(int64(span)))+1)
	if _, err := b.again(order{Do: "destroy", Receipt: rec}); err != nil {
		b.t.Fatalf("round %d: the next destroy: %v", round, err)
	}
	if left := b.left(); len(left) > 0 {
		b.t.Fatalf("round %d: left behind: %v", round, left)
	}
}

func TestTwoProcessesCreatingAtOnceAreBothRight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var wg sync.WaitGroup
	codes := make([]int, 8)
	for i := range codes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			name := fmt.Sprintf("n%d", i%4) // every name twice
			_, _, codes[i] = b.run(order{Do: "create", Profile: "profile.stub", Name: name}, "", 0)
		}()
	}
	wg.Wait()
	won := 0
	for _, c := range codes {
		if c == 0 {
			won++
		}
	}
	if left := b.left(); won != 4 || len(left) != 4 {
		t.Errorf("%d won and the vendor holds %v, want 4 of each", won, left)
	}
	b.clean()
}
