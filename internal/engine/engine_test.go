package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestASandboxIsMadeUsedAndEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := context.Background()
	s := b.create(engine.Request{Profile: "profile.stub", Name: "one", TTL: "10m"})
	if s.State != "ready" || s.Extension != "ext.saas-stub" || s.Handle == "" || !s.ExpiresAt.Equal(s.CreatedAt.Add(10*time.Minute)) {
		t.Fatalf("created: %+v", s)
	}
	got, err := b.Get(ctx, s.Receipt)
	if err != nil || got.State != "ready" {
		t.Fatalf("get: %+v, %v", got, err)
	}
	res, err := b.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"echo", "hello"}})
	if err != nil || string(res.Stdout) != "hello\n" {
		t.Fatalf("exec: %+v, %v", res, err)
	}
	report, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if err != nil || len(report.Charges) == 0 {
		t.Fatalf("destroy: %+v, %v", report, err)
	}
	if _, err := b.Get(ctx, s.Receipt); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Fatalf("after destroy: %v", err)
	}
	if n, findings, err := verifyLedger(ctx, b.Engine); err != nil || len(findings) > 0 || n == 0 {
		t.Fatalf("ledger: %d events, %v, %v", n, findings, err)
	}
}
