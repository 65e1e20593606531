package rest

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"

// MaxPages bounds one listing.
const MaxPages = 500

// Pages calls page with each token in turn, "" first, until one names no next. A listing that goes in circles
// or has no end is KindUnavailable: half a listing must not pass for all.
func Pages(vendor string, page func(token string) (next string, err error)) error {
	seen := map[string]bool{}
	for token := ""; ; {
		next, err := page(token)
		if err != nil || next == "" {
			return err
		}
		if seen[next] || len(seen) == MaxPages {
			return extensions.Errorf(extensions.KindUnavailable, "the listing of %s does not end (%d pages)", vendor, len(seen)+1).
				WithRemedy("try again; if this persists, check the vendor's address")
		}
		seen[next] = true
		token = next
	}
}
