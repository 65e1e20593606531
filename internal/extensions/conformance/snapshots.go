package conformance

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var snapshotChecks = []check{
	{name: "snapshot/describes-itself", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		s := e.snapshot(e.snapshotter(), h)
		if s.SandboxID != h.ID || s.Handle.Extension != e.desc.Handler || !extensions.ValidSnapshotID(s.Handle.ID) || s.Handle.Version < 1 ||
			s.Handle.Ref == "" {
			e.Errorf("snapshot of %q with handle %+v", s.SandboxID, s.Handle)
		}
		if s.Kind != e.desc.Snapshots.Kinds[0] {
			e.Errorf("kind %q, the default is %q", s.Kind, e.desc.Snapshots.Kinds[0])
		}
		if s.Digest != "" && !strings.HasPrefix(s.Digest, "sha256:") || s.SizeBytes < 0 || time.Since(s.CreatedAt).Abs() > time.Minute {
			e.Errorf("digest %q, size %d, created %s", s.Digest, s.SizeBytes, s.CreatedAt)
		}
	}},
	{name: "snapshot/takes-the-kinds-it-declares", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		p := e.snapshotter()
		for _, k := range extensions.SnapshotKinds {
			spec := extensions.SnapshotSpec{ID: e.newSnapshotID(), Name: "kept", Account: e.cfg.Account, CreatedAt: time.Now(), Kind: k}
			s, err := p.Snapshot(e.ctx(), h, spec)
			if !slices.Contains(e.desc.Snapshots.Kinds, k) {
				e.wantKind("a snapshot of the kind "+string(k)+", which is not declared", err, extensions.KindUnsupported)
				continue
			}
			if err != nil {
				e.Errorf("a snapshot of the kind %s: %v", k, err)
				continue
			}
			e.forget(s.Handle)
			if s.Kind != k {
				e.Errorf("asked for a snapshot of the kind %s, got %s", k, s.Kind)
			}
			if e.desc.Snapshots.EndsSource {
				_, h, _ = e.ready()
			}
		}
	}},
	{name: "snapshot/stops-its-source-as-declared", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		e.snapshot(e.snapshotter(), h)
		switch s := e.desc.Snapshots; {
		case s.StopsSource:
			e.wantPhase(h, extensions.PhasePaused)
		case !s.EndsSource:
			e.wantPhase(h, extensions.PhaseReady)
		}
	}},
	{name: "snapshot/ends-its-source-as-declared", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		if !e.desc.Snapshots.EndsSource {
			return
		}
		_, h, _ := e.ready()
		p := e.snapshotter()
		s := e.snapshot(p, h)
		e.wantPhase(h, extensions.PhaseExpired, extensions.PhaseTerminated, extensions.PhaseFailed)
		_, err := p.Snapshot(e.ctx(), h, extensions.SnapshotSpec{ID: e.newSnapshotID(), Account: e.cfg.Account, CreatedAt: time.Now()})
		e.wantKind("another snapshot of what the first has ended", err, extensions.KindNotFound)
		e.settle()
		if found, err := p.FindSnapshot(e.ctx(), s.Handle.ID); err != nil || found.Handle.Ref != s.Handle.Ref {
			e.Errorf("while its ended source is there, found %+v, %v; want %+v", found, err, s)
		}
	}},
	{name: "snapshot/leaves-an-ended-source-to-its-teardown", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		if !e.desc.Snapshots.EndsSource {
			return
		}
		_, h, _ := e.ready()
		e.snapshot(e.snapshotter(), h)
		if r := e.teardown(h); r.AlreadyGone || time.Since(r.EndedAt).Abs() > time.Minute {
			e.Errorf("the teardown of what a snapshot has ended says %+v", r)
		}
	}},
	{name: "snapshot/expires-as-declared", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		s := e.snapshot(e.snapshotter(), h)
		switch expires := e.desc.Snapshots.Expires; {
		case expires == 0 && !s.ExpiresAt.IsZero():
			e.Errorf("the place deletes it at %s, declared is that it keeps it", s.ExpiresAt)
		case expires > 0 && s.ExpiresAt.Sub(s.CreatedAt.Add(expires)).Abs() > time.Minute:
			e.Errorf("the place deletes it at %s, declared are %s from %s", s.ExpiresAt, expires, s.CreatedAt)
		}
	}},
	{name: "snapshot/idempotent-by-id", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		p := e.snapshotter()
		s := e.snapshot(p, h)
		again, err := p.Snapshot(e.ctx(), h, extensions.SnapshotSpec{ID: s.Handle.ID, Name: "kept", Account: e.cfg.Account,
			CreatedAt: time.Now()})
		if err != nil {
			e.Fatalf("second snapshot: %v", err)
		}
		if again.Handle.Ref != s.Handle.Ref || again.Digest != s.Digest {
			e.Errorf("the second call made %+v, want %+v", again.Handle, s.Handle)
		}
	}},
	{name: "snapshot/find", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		s := e.snapshot(e.snapshotter(), h)
		e.settle()
		found, err := e.snapshotter().FindSnapshot(e.ctx(), s.Handle.ID)
		if err != nil {
			e.Fatalf("find: %v", err)
		}
		if found.Handle.Ref != s.Handle.Ref || found.SandboxID != h.ID {
			e.Errorf("found %+v, want %+v", found, s)
		}
	}},
	{name: "snapshot/find-unknown", power: extensions.PowerSnapshot, run: func(e *env) {
		want := extensions.KindIndeterminate
		if e.desc.Snapshots.Find.Strength == extensions.FindStrong {
			want = extensions.KindNotFound
		}
		_, err := e.snapshotter().FindSnapshot(e.ctx(), e.newSnapshotID())
		e.wantKind("find of a snapshot that never was", err, want)
	}},
	{name: "snapshot/works-in-another-process", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		s := e.snapshot(e.snapshotter(), h)
		b, err := json.Marshal(s.Handle)
		if err != nil {
			e.Fatal(err)
		}
		var again extensions.SnapshotHandle
		if err := json.Unmarshal(b, &again); err != nil {
			e.Fatal(err)
		}
		got, err := power[extensions.Snapshotter](e, e.openAs(e.cfg)).StatSnapshot(e.ctx(), again)
		if err != nil || got.Digest != s.Digest || got.SandboxID != s.SandboxID {
			e.Errorf("another process sees %+v, %v; want %+v", got, err, s)
		}
	}},
	{name: "snapshot/restore", shares: true, power: extensions.PowerSnapshot, also: execToo, run: func(e *env) {
		if !e.desc.Capabilities.FsSnapshot {
			return
		}
		spec, h, _ := e.ready()
		e.sh(h, "rm -f later l && mkdir -p d && printf kept >d/f && ln -s d/f l")
		s := e.snapshot(e.snapshotter(), h)
		lives := e.goesOn(spec, h)
		if lives {
			e.sh(h, "printf changed >d/f; printf x >later")
		}
		_, restored, _ := e.ready(With(func(sp *extensions.Spec) {
			sp.FromSnapshot = &extensions.SnapshotRef{ID: s.Handle.ID, Handle: s.Handle}
		}))
		if got := e.sh(restored, "cat l; test -f later || printf ' alone'"); got != "kept alone" {
			e.Errorf("restored: %q", got)
		}
		if !lives {
			return
		}
		if got := e.sh(h, "cat d/f"); got != "changed" {
			e.Errorf("the restore changed the sandbox it came from: %q", got)
		}
	}},
	{name: "snapshot/restore-of-missing-refused", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		s := e.snapshot(e.snapshotter(), h)
		if err := e.snapshotter().DeleteSnapshot(e.ctx(), s.Handle); err != nil {
			e.Fatal(err)
		}
		broken, _, err := e.b.Provision(e.ctx(), e.spec(With(func(sp *extensions.Spec) {
			sp.FromSnapshot = &extensions.SnapshotRef{ID: s.Handle.ID, Handle: s.Handle}
		})))
		e.cleanUp(broken)
		e.wantKind("restore of a deleted snapshot", err, extensions.KindNotFound, extensions.KindInvalid)
	}},
	{name: "snapshot/delete", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		p := e.snapshotter()
		s := e.snapshot(p, h)
		if err := p.DeleteSnapshot(e.ctx(), s.Handle); err != nil {
			e.Fatalf("delete: %v", err)
		}
		_, err := p.StatSnapshot(e.ctx(), s.Handle)
		e.wantKind("stat of a deleted snapshot", err, extensions.KindNotFound)
	}},
	{name: "snapshot/delete-gone-is-success", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		p := e.snapshotter()
		s := e.snapshot(p, h)
		for range 2 {
			if err := p.DeleteSnapshot(e.ctx(), s.Handle); err != nil {
				e.Errorf("delete: %v", err)
			}
		}
	}},
	{name: "snapshot/delete-foreign-refused", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		p := e.snapshotter()
		s := e.snapshot(p, h)
		foreign := s.Handle
		foreign.ID = e.newSnapshotID()
		e.wantKind("delete with a handle that has another id than the object", p.DeleteSnapshot(e.ctx(), foreign), extensions.KindConflict,
			extensions.KindInvalid)
		if _, err := p.StatSnapshot(e.ctx(), s.Handle); err != nil {
			e.Errorf("after the refusal: %v", err)
		}
	}},
	{name: "snapshot/delete-relabelled-refused", shares: true, power: extensions.PowerSnapshot,
		hook: hookNamed("RelabelSnapshot", func(h Harness) bool { return h.RelabelSnapshot != nil }), run: func(e *env) {
			_, h, _ := e.ready()
			p := e.snapshotter()
			s := e.snapshot(p, h)
			e.h.RelabelSnapshot(e.TB, e.cfg, s.Handle, e.newSnapshotID())
			e.wantKind("delete of a snapshot that carries another id", p.DeleteSnapshot(e.ctx(), s.Handle), extensions.KindConflict)
			e.h.RelabelSnapshot(e.TB, e.cfg, s.Handle, s.Handle.ID)
			if _, err := p.StatSnapshot(e.ctx(), s.Handle); err != nil {
				e.Errorf("after the refusal: %v", err)
			}
		}},
	{name: "snapshot/outlives-its-sandbox", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		_, h, _ := e.ready()
		s := e.snapshot(e.snapshotter(), h)
		e.teardown(h)
		if _, err := e.snapshotter().StatSnapshot(e.ctx(), s.Handle); err != nil {
			e.Errorf("after the teardown of its sandbox: %v", err)
		}
	}},
	{name: "snapshot/of-gone-is-not-found", shares: true, power: extensions.PowerSnapshot, run: func(e *env) {
		h := e.gone()
		_, err := e.snapshotter().Snapshot(e.ctx(), h,
			extensions.SnapshotSpec{ID: e.newSnapshotID(), Account: e.cfg.Account, CreatedAt: time.Now()})
		e.wantKind("snapshot of what is gone", err, extensions.KindNotFound)
	}},
	{name: "snapshot/keeps-no-secret", power: extensions.PowerSnapshot, also: []extensions.Power{extensions.PowerExec}, run: func(e *env) {
		if e.desc.Snapshots.HoldsSecrets {
			return
		}
		_, h, _ := e.ready(WithSecret("CANARY", canary))
		s := e.snapshot(e.snapshotter(), h)
		_, restored, _ := e.ready(With(func(sp *extensions.Spec) {
			sp.FromSnapshot = &extensions.SnapshotRef{ID: s.Handle.ID, Handle: s.Handle}
		}))
		if got := e.sh(restored, `printf %s "${CANARY-unset}"`); got != "unset" {
			e.Errorf("the secret of the first sandbox reached the restored one: %q", got)
		}
	}},
	{name: "snapshot/keeps-no-secret-file", power: extensions.PowerSnapshot, also: []extensions.Power{extensions.PowerExec},
		secretsAs: extensions.SecretsFile, run: func(e *env) {
			if e.desc.Snapshots.HoldsSecrets {
				return
			}
			_, h, _ := e.ready(WithSecret("CANARY", canary), WithSecretsAs(extensions.SecretsFile))
			s := e.snapshot(e.snapshotter(), h)
			_, restored, _ := e.ready(WithSecretsAs(extensions.SecretsFile), With(func(sp *extensions.Spec) {
				sp.FromSnapshot = &extensions.SnapshotRef{ID: s.Handle.ID, Handle: s.Handle}
			}))
			if got := e.sh(restored, "cat "+extensions.SecretsDir+"/CANARY 2>/dev/null || printf none"); got != "none" {
				e.Errorf("the file of the first sandbox's secret reached the restored one: %q", got)
			}
		}},
}

func (e *env) snapshotter() extensions.Snapshotter { return power[extensions.Snapshotter](e, e.b) }

func (e *env) newSnapshotID() string {
	e.Helper()
	id, err := extensions.NewSnapshotID(nil)
	if err != nil {
		e.Fatal(err)
	}
	return id
}

// snapshot takes a snapshot that is deleted when the check ends.
func (e *env) snapshot(p extensions.Snapshotter, h extensions.Handle) extensions.Snapshot {
	e.Helper()
	return e.keep(p, h, "")
}

func (e *env) keep(p extensions.Snapshotter, h extensions.Handle, k extensions.SnapshotKind) extensions.Snapshot {
	e.Helper()
	s, err := p.Snapshot(e.ctx(), h, extensions.SnapshotSpec{ID: e.newSnapshotID(), Name: "kept", Account: e.cfg.Account,
		CreatedAt: time.Now().UTC(), Kind: k})
	if err != nil {
		e.Fatalf("snapshot: %v", err)
	}
	e.forget(s.Handle)
	return s
}

// goesOn resumes a sandbox that its snapshot stopped, and reports whether it runs: its snapshot may have ended it.
func (e *env) goesOn(spec extensions.Spec, h extensions.Handle) bool {
	e.Helper()
	if e.desc.Snapshots.StopsSource {
		e.resume(h, spec.Deadline)
	}
	return !e.desc.Snapshots.EndsSource
}

// forget deletes a snapshot when the check ends.
func (e *env) forget(h extensions.SnapshotHandle) {
	e.Cleanup(func() {
		b, err := e.h.New(e.TB).Open(e.ctx(), e.cfg)
		if err != nil {
			e.Logf("cleanup: open: %v", err)
			return
		}
		defer func() { _ = b.Close() }()
		if p, ok := b.(extensions.Snapshotter); ok {
			if err := p.DeleteSnapshot(e.ctx(), h); err != nil {
				e.Logf("cleanup: delete of snapshot %s: %v", h.ID, err)
			}
		}
	})
}
