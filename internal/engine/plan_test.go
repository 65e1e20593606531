package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestAPlanTellsWhoHasTheName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", Name: "one"}
	if p, err := b.Plan(ctx, req); err != nil || p.NameTaken != nil {
		t.Fatalf("a free name: %+v, %v", p.NameTaken, err)
	}
	s := b.create(req)
	p, err := b.Plan(ctx, req)
	if err != nil || p.NameTaken == nil || p.NameHolder != s.ID || !strings.Contains(p.NameTaken.Detail, string(s.ID)) {
		t.Errorf("a taken name: %+v, %v", p.NameTaken, err)
	}
	req.OnConflict = "adopt"
	if p, err := b.Plan(ctx, req); err != nil || p.NameTaken != nil {
		t.Errorf("about to be adopted: %+v, %v", p.NameTaken, err)
	}
}

func TestAPlanIsRefusedWhereTheLedgerCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.StateDir, "ledger.db"), []byte(strings.Repeat("garbage ", 600)), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := b.Plan(context.Background(), engine.Request{Profile: "profile.stub", Name: "one"})
	if !errors.Is(err, engine.ErrLedgerUnusable) || p.Version == "" || len(p.Notices) == 0 ||
		!strings.Contains(p.Notices[len(p.Notices)-1].Summary, "ledger") {
		t.Errorf("notices %v, %v", p.Notices, err)
	}
}

func TestSecretsThatAPlanDoesNotKnowAreNoChangeOfTheProfile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	req := engine.Request{Profile: "profile.stub", Name: "one", Secrets: map[string]engine.Secret{"TOKEN": extensions.NewSecret("v")}}
	s := b.create(req)
	req.Secrets = nil
	if ns, err := b.PlanUpdate(ctx, s.Receipt, req, req); err != nil || len(ns) > 0 {
		t.Errorf("notices %v, %v", ns, err)
	}
	req.Env = map[string]string{"MORE": "1"}
	if ns, err := b.PlanUpdate(ctx, s.Receipt, req, req); err != nil || len(ns) == 0 {
		t.Errorf("a real difference: notices %v, %v", ns, err)
	}
}

func TestAHostHasRoomForAsManyAsItsOwnerSaysEvenAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	host := engine.Host{Name: "small", Local: true, Capacity: &extensions.HostCapacity{MaxSandboxes: 2}}
	var wg sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, errs[i] = b.Create(context.Background(), engine.Request{Profile: "profile.quickstart", Hosts: []string{host.Ref()}}, nil, nil)
		}()
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !extensions.IsKind(err, extensions.KindExhausted) || !strings.Contains(err.Error(), "2 of at most 2"):
			t.Errorf("refused otherwise: %v", err)
		}
	}
	if left := b.left(); made != 2 || len(left) != 2 {
		t.Errorf("%d were made, there are %v", made, left)
	}
	b.clean()
}

func TestAnInterruptedOrLateCreateSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.script(saasstub.Rule{Op: vendor.OpStart, Do: vendor.DoSlowReady, Delay: vendor.Duration(time.Hour)})
	if err := b.Recover(context.Background(), nil); err != nil { // makes the ledger, which takes its time
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second) // for the ledger of a busy machine, too
	defer cancel()
	_, err := b.Create(ctx, engine.Request{Profile: "profile.stub", Name: "late"}, nil, nil)
	if !extensions.IsKind(err, extensions.KindTimeout) || !strings.Contains(extensions.RemedyOf(err), "timeouts.create") {
		t.Errorf("late: %v (%s)", err, extensions.RemedyOf(err))
	}
	ctx, stop := context.WithCancel(context.Background())
	time.AfterFunc(700*time.Millisecond, stop)
	if _, err = b.Create(ctx, engine.Request{Profile: "profile.stub", Name: "stopped"}, nil, nil); !extensions.IsKind(err,
		extensions.KindInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err = b.Create(context.Background(), engine.Request{Profile: "profile.stub", Name: "short", TTL: "1s"}, nil, nil); err == nil ||
		!strings.Contains(extensions.RemedyOf(err), "raise ttl") {
		t.Errorf("expired before ready: %v (%s)", err, extensions.RemedyOf(err))
	}
	if left := b.left(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	b.clean()
}

func TestAHostIsFreeOnceItsSandboxNoLongerGoesByItsName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	host := engine.Host{Name: "hostb", Local: true}
	if _, err := b.RegisterHost(ctx, host, ""); err != nil {
		t.Fatal(err)
	}
	req := engine.Request{Profile: "profile.quickstart", Name: "one", Hosts: []string{host.Ref()}}
	s := b.create(req)
	if err := b.ForgetHost(ctx, "hostb", host.Ref(), false); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("forgetting a host in use: %v", err)
	}
	req.Hosts = nil
	moved, err := b.Update(ctx, s.Receipt, req, nil)
	if err != nil || moved.Host != "" {
		t.Fatalf("updated: host %q, %v", moved.Host, err)
	}
	if err := b.ForgetHost(ctx, "hostb", host.Ref(), false); err != nil {
		t.Errorf("forgetting a host nobody goes by: %v", err)
	}
	if got, err := b.Get(ctx, moved.Receipt); err != nil || got.State != "ready" {
		t.Errorf("the sandbox: %s, %v", got.State, err)
	}
	req.Hosts = []string{host.Ref()}
	if named, err := b.Update(ctx, moved.Receipt, req, nil); err != nil || named.HostName != "hostb" {
		t.Errorf("named again: %q, %v", named.HostName, err)
	}
	b.clean()
}
