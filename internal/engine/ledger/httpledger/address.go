package httpledger

import (
	"context"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func init() {
	s := ledger.Scheme{Shared: true, Shown: shown,
		Open: func(ctx context.Context, address string, o ledger.Options) (ledger.Ledger, error) {
			return Open(ctx, address, o)
		},
		Check: func(address string) error {
			_, err := parse(address)
			return err
		}}
	ledger.Register("https", s)
	ledger.Register("http", s)
}

const form = "write it as https://host[:port][/path][?ca=/path/of/ca.pem]; the token comes from " + EnvToken + " or " + EnvTokenFile

// place is an address taken apart.
type place struct {
	base string // https://host/path, without a slash at its end
	ca   string // file with the certificates to trust, "" = the system's
}

// parse reads an address. A token in it would be in plans, logs and lists of
// processes: it is refused.
func parse(address string) (place, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "":
		return place{}, oops(extensions.KindInvalid, "the ledger address names no host").WithRemedy(form)
	case u.User != nil:
		return place{}, oops(extensions.KindInvalid, "the ledger address has a user or a password in it").
			WithRemedy("leave it out: the token comes from %s or %s", EnvToken, EnvTokenFile)
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return place{}, oops(extensions.KindInvalid, "the ledger address has something after #").WithRemedy(form)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return place{}, oops(extensions.KindInvalid, "the ledger at %s would be spoken to without encryption", extensions.Clean(u.Host, 200)).
			WithRemedy("use https://; http:// is for this machine alone")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return place{}, oops(extensions.KindInvalid, "what follows ? in the ledger address cannot be read").WithRemedy(form)
	}
	p := place{base: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}).String(), ca: q.Get("ca")}
	for name, values := range q {
		if name != "ca" || len(values) != 1 || p.ca == "" {
			return place{}, oops(extensions.KindInvalid, "the ledger address cannot have %q", extensions.Clean(name, 40)).WithRemedy(form)
		}
	}
	if p.ca != "" && !filepath.IsAbs(p.ca) {
		return place{}, oops(extensions.KindInvalid, "ca in the ledger address is not an absolute path").WithRemedy(form)
	}
	return p, nil
}

func shown(address string) string {
	p, err := parse(address)
	if err != nil {
		scheme, _, _ := strings.Cut(address, ":")
		return scheme + "://"
	}
	return p.base
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
