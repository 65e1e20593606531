package place

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/flight"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// PrepareImage lets the place pull or build what spec runs, once for all sandboxes of this process with the same
// images. A place without the power prepares them with each create.
func (b *Backend) PrepareImage(ctx context.Context, spec extensions.Spec) error {
	x, lacks := power[extensions.ImagePreparer](b, extensions.PowerPrepareImage)
	if lacks != nil {
		return nil //nolint:nilerr // see above
	}
	key := "image\x00" + b.at.key() + "\x00" + spec.ImageKey()
	if b.places.isPrepared(key) {
		return nil
	}
	_, err := flight.Do(ctx, b.places.Flights, key, func(ctx context.Context) (digest string, err error) {
		if b.places.isPrepared(key) { // by a flight that ended after the caller had looked
			return "", nil
		}
		c := call{op: "prepare-image", id: spec.ID, timeout: timeoutProvision, patience: patienceChange, repeatable: true}
		err = b.call(ctx, c, func(ctx context.Context) (err error) {
			digest, err = x.PrepareImage(ctx, spec)
			return err
		})
		if err == nil {
			b.places.hasPrepared(key)
		}
		return digest, err
	})
	return b.Classify("prepare-image", spec.ID, err)
}

func (p *Places) isPrepared(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prepared[key]
}

func (p *Places) hasPrepared(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepared[key] = true
}

// Registries returns the logins of a binding. A password is read when an image needs it, and hidden from then on in
// whatever that binding says.
func (p *Places) Registries(b catalog.Binding) extensions.Registries {
	if len(b.Registries) == 0 {
		return nil
	}
	all := extensions.Registries{}
	for host, r := range b.Registries {
		all[host] = extensions.RegistryLogin{Username: r.Username, Password: func(ctx context.Context) (extensions.Secret, error) {
			s, err := secretref.Resolve(ctx, r.Password, secretref.Options{})
			if err == nil {
				p.hide(b.ID, map[string]extensions.Secret{host: s})
			}
			return s, err
		}}
	}
	return all
}
