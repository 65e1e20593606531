package engine_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func TestWhatVerifyFoundIsToldThoughUsageCannotBeAddedUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"one", "two"} {
		s := b.create(engine.Request{Profile: "profile.stub", Name: name, TTL: "1h"})
		b.end(s)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(b.StateDir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("UPDATE meters SET own_key = 9223372036854775807")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	v, err := b.reopen().Verify(t.Context(), engine.Evidence{})
	if all := strings.Join(v.Findings, "\n"); err != nil || !strings.Contains(all, "its sums differ") ||
		!strings.Contains(all, "usage cannot be added up") || len(v.Heads) == 0 {
		t.Errorf("%s; found:\n%s", told(err), all)
	}
}
