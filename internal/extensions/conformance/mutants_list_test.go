package conformance

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// listThen changes the list of everything.
func listThen(change func(b *broken, all []seen, err error) ([]seen, error)) func(*broken, ctx, []handle) ([]seen, error) {
	return func(b *broken, c ctx, hs []handle) ([]seen, error) {
		all, err := b.wholeBackend.Status(c, hs)
		if hs != nil {
			return all, err
		}
		return change(b, all, err)
	}
}

var listMutants = map[string]mutant{
	"list/has-every-page": {status: listThen(func(_ *broken, all []seen, err error) ([]seen, error) {
		return all[:min(len(all), 2)], err // the first page
	})},
	"list/a-broken-one-is-an-error": {status: listThen(func(_ *broken, all []seen, err error) ([]seen, error) {
		return all, swallow(err, extensions.KindUnavailable)
	})},
	"list/as-fresh-as-declared": {status: listThen(func(b *broken, all []seen, err error) ([]seen, error) {
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		for id := range b.w.torn { // it still shows what is gone
			all = append(all, seen{ID: id, Phase: extensions.PhaseReady})
		}
		return all, err
	})},
}
