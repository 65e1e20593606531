package conformance

import (
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// urlThen changes the URL on its way out.
func urlThen(change func(u *extensions.URL)) func(*broken, ctx, handle, int) (extensions.URL, error) {
	return func(b *broken, c ctx, h handle, port int) (extensions.URL, error) {
		u, err := b.wholeBackend.URL(c, h, port)
		change(&u)
		return u, err
	}
}

var urlMutants = map[string]mutant{
	"url/reaches-with-its-header": {url: urlThen(func(u *extensions.URL) { u.Address = strings.Replace(u.Address, "8080", "8081", 1) })},
	"url/header-is-needed": {provision: func(b *broken, c ctx, s spec) (handle, seen, error) {
		h, o, err := b.wholeBackend.Provision(c, s)
		if err == nil {
			err = place(b.cfg).Publish(string(s.ID))
		}
		return h, o, err
	}, also: []string{"url/ends-when-it-says"}}, // what needs no header has no end
	"url/address-is-no-secret": {url: urlThen(func(u *extensions.URL) { u.Address += "?token=" + u.Header.Value.Reveal() }),
		also: []string{"url/reaches-with-its-header"}}, // a stub has no query
	"url/ends-when-it-says": {url: urlThen(func(u *extensions.URL) { u.ExpiresAt = u.ExpiresAt.Add(-2 * time.Minute) })},
	"url/gone-is-not-found": {url: func(b *broken, c ctx, h handle, port int) (extensions.URL, error) {
		u, err := b.wholeBackend.URL(c, h, port)
		return u, swallow(err, extensions.KindNotFound)
	}},
}
