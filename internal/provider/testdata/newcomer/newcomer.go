// Package newcomer is an adapter that nothing but the list of adapters knows: a sandbox is a file, and nothing runs in
// it.
package newcomer

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handler = "newcomer"

// New returns the extension.
func New() extensions.Extension { return extension{} }

type extension struct{}

func (extension) Describe() extensions.Descriptor {
	return extensions.Descriptor{
		Handler: handler,
		Title:   "Newcomer",
		Doc:     "A file on this machine for each sandbox.",
		Places:  []extensions.Place{extensions.PlaceMachine},
		Find:    extensions.Find{Strength: extensions.FindStrong},
		List:    extensions.List{Freshness: extensions.ListStrong},
		Capabilities: extensions.Capabilities{
			TransportModel:  extensions.TransportDialIn,
			IdleCostModel:   extensions.IdleZero,
			BillingModel:    extensions.BillingFixed,
			PricingModel:    extensions.PricingSelfHosted,
			EgressDefault:   extensions.NetworkDeny,
			Egress:          extensions.EgressDenyOnly,
			DNS:             extensions.DNSClosed,
			Ingress:         extensions.IngressClosed,
			Expiry:          extensions.ExpirySweep,
			IdleReap:        extensions.IdleReapNone,
			ExtendTTL:       extensions.ExtendNone,
			Regions:         []string{"*"},
			OS:              []string{"linux"},
			Arch:            []string{"*"},
			IsolationLevels: []extensions.Isolation{extensions.IsolationNone},
			Entrypoints:     []extensions.EntrypointMode{extensions.EntrypointIdle},
			SecretsAs:       []extensions.SecretDelivery{extensions.SecretsEnv},
		},
	}
}

func (extension) Open(_ context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if err := (extension{}).Describe().CheckPlace(cfg.Host); err != nil {
		return nil, err
	}
	return &backend{dir: filepath.Join(cfg.StateDir, handler), account: cfg.Account}, nil
}

type backend struct{ dir, account string }

type record struct {
	ID         extensions.ID
	Account    string
	Generation int64
	Started    time.Time
}

func (b *backend) file(id extensions.ID) string { return filepath.Join(b.dir, string(id)+".json") }

func (b *backend) Provision(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
	r := record{spec.ID, b.account, spec.Generation, time.Now().UTC()}
	if err := b.make(ctx, spec, &r); err != nil {
		return extensions.Handle{}, extensions.Observation{}, extensions.Failed("provision", spec.ID, err, nil)
	}
	return handleOf(r), observe(r), nil
}

func (b *backend) make(ctx context.Context, spec extensions.Spec, r *record) error {
	if err := errors.Join(ctx.Err(), spec.CheckIdentity(r.Started), extension{}.Describe().Accept(spec)); err != nil {
		return err
	}
	if old, err := b.read(spec.ID); err == nil {
		*r = old
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(b.dir, 0o700), os.WriteFile(b.file(spec.ID), text, 0o600))
}

func (b *backend) WaitReady(_ context.Context, _ extensions.Spec, h extensions.Handle) (extensions.Observation, error) {
	r, err := b.read(h.ID)
	return observe(r), err
}

func (b *backend) Status(_ context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
	if handles == nil {
		return b.list()
	}
	all := []extensions.Observation{}
	for _, h := range handles {
		r, err := b.read(h.ID)
		seen := observe(r)
		if err != nil {
			seen = extensions.Observation{ID: h.ID, Handle: h, Phase: extensions.PhaseAbsent}
		}
		all = append(all, seen)
	}
	return all, nil
}

func (b *backend) list() ([]extensions.Observation, error) {
	all := []extensions.Observation{}
	entries, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, extensions.Errorf(extensions.KindInternal, "listing %s: %w", b.dir, err)
	}
	for _, e := range entries {
		id, _ := extensions.ParseID(e.Name()[:len(e.Name())-len(".json")])
		if r, err := b.read(id); err == nil {
			all = append(all, observe(r))
		}
	}
	return all, nil
}

func (b *backend) Find(_ context.Context, id extensions.ID) (extensions.Handle, error) {
	r, err := b.read(id)
	if err != nil {
		return extensions.Handle{}, extensions.Failed("find", id, err, nil)
	}
	return handleOf(r), nil
}

func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (report extensions.CleanupReport, err error) {
	defer func() { err = extensions.Failed("teardown", h.ID, err, nil) }()
	if h.Ref != string(h.ID) {
		return report, extensions.Errorf(extensions.KindConflict, "the handle is of another sandbox, %q", h.Ref)
	}
	r, absent := b.read(h.ID)
	switch {
	case ctx.Err() != nil:
		return report, ctx.Err()
	case absent != nil:
		return extensions.CleanupReport{AlreadyGone: true}, nil
	}
	return extensions.CleanupReport{Removed: []string{"file"}, StartedAt: r.Started}, os.Remove(b.file(h.ID))
}

func (b *backend) Close() error { return nil }

func (b *backend) read(id extensions.ID) (r record, err error) {
	text, err := os.ReadFile(b.file(id))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || r.Account != b.account {
		return record{}, extensions.Errorf(extensions.KindNotFound, "there is no sandbox %s", id)
	}
	return r, nil
}

func handleOf(r record) extensions.Handle {
	return extensions.Handle{Extension: handler, Version: 1, ID: r.ID, Ref: string(r.ID)}
}

func observe(r record) extensions.Observation {
	return extensions.Observation{ID: r.ID, Handle: handleOf(r), Phase: extensions.PhaseReady, Generation: r.Generation, StartedAt: r.Started}
}
