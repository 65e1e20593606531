package sqlstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// aLife takes one sandbox through its states. Its keys are the same for the
// same id, as when a caller repeats a call.
func aLife(ctx context.Context, l *ledger.Ledger, id extensions.ID) error {
	holder, err := l.Holder(ctx)
	if err != nil {
		return err
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := l.Begin(ctx, ledger.Begin{Key: string(id), Holder: holder, ID: id, Account: "acme/web", Name: string(id), CreatedAt: now,
		Profile: "profile.base", ProfileVersion: "1.0.0", TTL: time.Hour, ExpiresAt: now.Add(time.Hour),
		Quote: &ledger.Quote{Body: json.RawMessage(`{"a":1}`)}})
	for _, to := range []lifecycle.State{lifecycle.Provisioning, lifecycle.Ready, lifecycle.Destroying, lifecycle.Destroyed} {
		if err != nil {
			return err
		}
		c := ledger.Change{ID: id, Key: string(id) + string(to), Expect: ledger.Expect{Fence: s.Fence}, To: to}
		switch to {
		case lifecycle.Ready:
			c.Finish = &ledger.FinishIntent{Outcome: ledger.Confirmed}
			c.Meter.Open = &ledger.MeterOpen{At: now, Source: "backend", Currency: "USD"}
		case lifecycle.Destroying:
			c.Intent = &ledger.OpenIntent{Kind: ledger.IntentDestroy, Holder: holder}
		case lifecycle.Destroyed:
			c.Finish = &ledger.FinishIntent{Outcome: ledger.Confirmed}
			c.Meter.Close = &ledger.MeterClose{At: now.Add(time.Minute), Source: "backend"}
		}
		s, err = l.Apply(ctx, c)
	}
	return err
}

// Whatever exchange with the database is lost, the request or its answer,
// commits included: the life is recorded once, whole, and nobody notices.
func TestACutAtEveryStatementLosesNothing(t *testing.T) {
	exttest.Alone(t)
	t.Parallel()
	for what, answer := range map[string]bool{"before it is sent": false, "before its answer": true} {
		t.Run(what, func(t *testing.T) { t.Parallel(); cutEverywhere(t, answer) })
	}
}

// cutEverywhere leads a life for each of its exchanges, which is lost.
func cutEverywhere(t *testing.T, answer bool) {
	address := pgtest.New(t)
	cutter := pgtest.NewCutter(t, address)
	ctx := context.Background()
	direct, err := sqlstore.Open(ctx, address, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	from := int64(1)
	for n := 1; ; n++ {
		l, err := sqlstore.Open(ctx, cutter.Address, sqlstore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := extensions.NewID(nil)
		if err != nil {
			t.Fatal(err)
		}
		cutter.Cut(n, answer)
		err = aLife(ctx, l, id)
		cuts := cutter.Cuts()
		cutter.Cut(0, false)
		if err := errors.Join(err, l.Close()); err != nil {
			t.Fatalf("exchange %d lost: %v", n, err)
		}
		var types []string
		events, err := direct.Events(ctx, "acme", from, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if from = e.Seq + 1; e.Subject == string(id) {
				types = append(types, e.Type)
			}
		}
		want := "sandbox.requested sandbox.provisioning sandbox.ready sandbox.destroying sandbox.destroyed"
		if got := strings.Join(types, " "); got != want {
			t.Fatalf("exchange %d lost: %s", n, got)
		}
		if cuts > 0 {
			continue
		}
		if n < 50 {
			t.Errorf("only %d exchanges were cut", n-1)
		}
		break // the life has no more exchanges
	}
	if r, err := direct.Verify(ctx); err != nil || len(r.Problems) > 0 {
		t.Errorf("%v, %q", err, r.Problems)
	}
}

func TestAPostgresThatIsNotThereIsToldWithoutThePassword(t *testing.T) {
	t.Parallel()
	_, err := sqlstore.Open(context.Background(), "postgres://me:hush-hush@127.0.0.1:1/ledger", sqlstore.Options{})
	if !extensions.IsKind(err, extensions.KindUnavailable) || extensions.RemedyOf(err) == "" || strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
	_, err = sqlstore.Open(context.Background(), "postgres://me:hush-hush@db.example/ledger?sslmode=prefer", sqlstore.Options{})
	if !extensions.IsKind(err, extensions.KindInvalid) || strings.Contains(err.Error(), "hush") ||
		!strings.Contains(extensions.RemedyOf(err), "sslmode=verify-full") {
		t.Errorf("%v (%s)", err, extensions.RemedyOf(err))
	}
	if err := sqlstore.CheckURL("postgres://me:hush-hush@db:5432?x=%zz"); !extensions.IsKind(err, extensions.KindInvalid) ||
		strings.Contains(err.Error(), "hush") {
		t.Errorf("%v", err)
	}
}

// What others write meanwhile is no finding.
func TestVerifyingSeesOneStateOfTheWholeLedger(t *testing.T) {
	t.Parallel()
	l, err := sqlstore.Open(ctx, pgtest.New(t), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for range 3 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				id, err := extensions.NewID(nil)
				if err == nil {
					err = aLife(ctx, l, id)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 30 {
		if r, err := l.Verify(ctx); err != nil || len(r.Problems) > 0 {
			t.Errorf("%q, %v", r.Problems, err)
			break
		}
	}
	close(stop)
	writers.Wait()
}

func TestAMissingSchemaReadsAsEmptyAndIsNotMade(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	address := pgtest.New(t)
	for range 2 {
		l, err := sqlstore.Open(ctx, address, sqlstore.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		if l.ID() != "" {
			t.Error("reading made a ledger")
		}
		if rows, err := l.List(ctx, ledger.Filter{}); err != nil || len(rows) != 0 {
			t.Errorf("%v, %v", rows, err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
