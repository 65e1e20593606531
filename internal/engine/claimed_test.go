package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func (b *bench) eventual() *vendor.Vendor {
	return vendor.At(b.StateDir + "/" + saasstub.EventualHandler)
}

func TestALostAnswerHoldsANameForItsClaimAndNoLonger(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fund()
	asked := time.Now()
	b.run(order{Do: "create", Profile: "profile.eventual", Name: "one", TTL: "10h"}, failpointtest.Env+"=engine.create.placed:kill", 0)
	_, err := b.again(order{Do: "create", Profile: "profile.eventual", Name: "one"})
	if !extensions.IsKind(err, extensions.KindIndeterminate) {
		t.Fatalf("%v (%s)", err, extensions.RemedyOf(err))
	}
	_, text, _ := strings.Cut(extensions.RemedyOf(err), "at its deadline ")
	text, _, _ = strings.Cut(text, ";")
	held, perr := time.Parse(time.RFC3339, text)
	if perr != nil || held.Before(asked.Add(saasstub.Claim-time.Second)) || held.After(time.Now().Add(saasstub.Claim)) {
		t.Errorf("held until %q: %s", text, extensions.RemedyOf(err))
	}
	const later = saasstub.Claim + saasstub.Settle + time.Second
	if err := b.eventual().Advance(later); err != nil {
		t.Fatal(err)
	}
	b.Engine = b.reopen(ahead(func() time.Duration { return later }))
	b.end(b.create(engine.Request{Profile: "profile.eventual", Name: "one", TTL: "10m"}))
}

func TestAClaimBecomesTheWholeLife(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(engine.Request{Profile: "profile.eventual", Name: "one", TTL: "3h"})
	objs, err := b.eventual().Objects()
	if err != nil || len(objs) != 1 || objs[0].Deadline.Sub(s.ExpiresAt).Abs() > time.Millisecond {
		t.Errorf("%v: the vendor ends %+v, want %s", err, objs, s.ExpiresAt)
	}
	b.clean()
}

// A deadline that is set twice is the same: an answer that was lost fails no create.
func TestALengtheningWhoseAnswerWasLostIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, do := range []vendor.Action{vendor.DoLoseAnswer, vendor.DoBadGateway} {
		t.Run(string(do), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.does(b.StateDir+"/"+saasstub.EventualHandler, saasstub.Rule{Op: vendor.OpExtend, Do: do, Times: 1})
			s := b.create(engine.Request{Profile: "profile.eventual", Name: "one", TTL: "3h"})
			objs, err := b.eventual().Objects()
			if err != nil || len(objs) != 1 || objs[0].Deadline.Sub(s.ExpiresAt).Abs() > time.Millisecond {
				t.Errorf("%v: the vendor ends %+v, want %s", err, objs, s.ExpiresAt)
			}
			b.clean()
		})
	}
}

func TestAClaimThatCannotBecomeALifeIsAFailedCreate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.does(b.StateDir+"/"+saasstub.EventualHandler, saasstub.Rule{Op: vendor.OpExtend, Do: vendor.DoInvalid})
	s, err := b.Create(t.Context(), engine.Request{Profile: "profile.eventual", Name: "one", TTL: "3h"}, nil, nil)
	objs, oerr := b.eventual().Objects()
	if !extensions.IsKind(err, extensions.KindInvalid) || s.ID != "" || oerr != nil || len(objs) > 0 {
		t.Errorf("%q, %d objects: %v, %v", s.ID, len(objs), err, oerr)
	}
}

// What a place gets ready first may take longer than a claim: each attempt has a whole one, which the ledger knows before.
func TestAClaimBeginsWhenThePlaceIsAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ready bool // PrepareImage takes the time, and not the first attempt
		ttl   string
	}{"it waits before": {true, "3h"}, "it waits within": {false, "3h"}, "it ends soon after": {false, "6m"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b *bench
			var off atomic.Int64
			passes := func() error {
				off.Add(int64(5 * saasstub.Claim))
				return vendor.At(b.vendor).Advance(5 * saasstub.Claim)
			}
			x, attempts := &imaging{}, 0
			x.prepare = func(context.Context, extensions.Spec) error {
				if c.ready {
					return passes()
				}
				return nil
			}
			x.provision = func(ctx context.Context, s extensions.Spec) error {
				row, err := b.book().Get(ctx, s.ID)
				now := time.Now().Add(time.Duration(off.Load()))
				if left := s.Deadline.Sub(now); err != nil || left < saasstub.Claim/2 && s.Deadline != row.ExpiresAt || left > saasstub.Claim ||
					row.SentDeadline().Before(s.Deadline) {
					t.Errorf("%v: %s are left until %s, and the ledger says %s", err, left, s.Deadline, row.SentDeadline())
				}
				if attempts++; attempts > 1 || c.ready {
					return nil
				}
				return errors.Join(passes(), extensions.Errorf(extensions.KindUnavailable, "it was built anew: ask again"))
			}
			ext := x.extension().(*hooked)
			says := ext.says
			ext.says = func(d *extensions.Descriptor) {
				says(d)
				d.Find = saasstub.NewEventual().Describe().Find
			}
			b = newBench(t, having(ext), withImages("{pull: x}", ""), ahead(func() time.Duration { return time.Duration(off.Load()) }))
			s := b.create(engine.Request{Profile: "profile.image", Name: "one", TTL: c.ttl})
			objs, err := vendor.At(b.vendor).Objects()
			if err != nil || len(objs) != 1 || objs[0].Deadline.Sub(s.ExpiresAt).Abs() > time.Millisecond {
				t.Errorf("%v: the vendor ends %+v, want %s", err, objs, s.ExpiresAt)
			}
			b.end(s)
			b.clean()
		})
	}
}
