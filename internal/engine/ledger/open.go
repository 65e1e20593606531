package ledger

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// DefaultURL is the ledger in a user's state folder, an absolute path.
func DefaultURL(stateDir string) string {
	return fileURL(filepath.Join(stateDir, "ledger.db"))
}

func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive letter
		path = "/" + path
	}
	return (&url.URL{Scheme: "sqlite", Path: path}).String()
}

// Scheme is a kind of ledger that addresses name before the colon.
type Scheme struct {
	// Open opens an address; see Open.
	Open func(ctx context.Context, address string, o Options) (Ledger, error)
	// Check reports whether Open would understand it: KindInvalid or KindUnsupported.
	Check func(address string) error
	// Shown leaves out of it what is nobody's business.
	Shown func(address string) string
	// Shared: the ledger is on another machine, or may be.
	Shared bool
}

var postgresScheme = Scheme{Open: openPostgres, Shared: true, Shown: shownPostgres, Check: func(address string) error {
	_, err := parsePostgres(address)
	return err
}}

// schemes are those there are, by name. What dials by itself joins in at start:
// this package does not.
var schemes = map[string]Scheme{"postgres": postgresScheme, "postgresql": postgresScheme, "sqlite": {
	Open: func(ctx context.Context, address string, o Options) (Ledger, error) {
		path, err := parseURL(address)
		if err != nil {
			return nil, err
		}
		return openSQLite(ctx, path, o)
	},
	Check: func(address string) error {
		_, err := parseURL(address)
		return err
	},
	Shown: func(address string) string { return address },
}}

// Register adds a scheme. It is for package initialisation; a name that is
// taken is a defect and panics.
func Register(name string, s Scheme) {
	if _, taken := schemes[name]; taken {
		panic("ledger: the scheme " + name + " is taken")
	}
	schemes[name] = s
}

// schemeOf also gives the address with its scheme as it is registered: they are
// the same in capitals.
func schemeOf(address string) (_ Scheme, normal string, known bool) {
	name, rest, colon := strings.Cut(address, ":")
	s, ok := schemes[strings.ToLower(name)]
	if ok && colon {
		address = strings.ToLower(name) + ":" + rest
	}
	return s, address, ok
}

// Shared reports an address whose ledger is on another machine, or may be.
func Shared(address string) bool {
	s, _, _ := schemeOf(address)
	return s.Shared
}

// ShownURL is an address Open understands without what is nobody's business:
// user and password. The same ledger is shown the same way to all its users.
func ShownURL(address string) string {
	if s, address, ok := schemeOf(address); ok {
		return s.Shown(address)
	}
	return address
}

func shownPostgres(address string) string {
	cfg, err := parsePostgres(address)
	if err != nil {
		return "postgres://"
	}
	return shownURL(cfg)
}

// CheckURL reports whether Open would understand the address, without looking
// at the place: KindInvalid or KindUnsupported.
func CheckURL(address string) error {
	if s, address, ok := schemeOf(address); ok {
		return s.Check(address)
	}
	_, err := parseURL(address)
	return err
}

// Open opens the ledger at sqlite:///absolute/path, postgres://… or an address
// of another scheme that was registered, creating its file or tables unless
// ReadOnly. Other stores are KindUnsupported.
func Open(ctx context.Context, address string, o Options) (Ledger, error) {
	if err := CheckURL(address); err != nil {
		return nil, err
	}
	s, address, _ := schemeOf(address)
	return s.Open(ctx, address, o)
}

func parseURL(address string) (path string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", failuref(extensions.KindInvalid, "the ledger address is not a URL").
			WithRemedy("write it as sqlite:///absolute/path/ledger.db, postgres://user@host/database or https://host")
	}
	switch u.Scheme {
	case "sqlite":
	default:
		return "", failuref(extensions.KindInvalid, "a ledger address starts with sqlite:///, postgres:// or https://, not %q", extensions.Clean(u.Scheme, 20)).
			WithRemedy("write it as sqlite:///absolute/path/ledger.db, postgres://user@host/database or https://host")
	}
	if u.Host != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", failuref(extensions.KindInvalid, "the ledger address has more than a path").
			WithRemedy("write it with three slashes and nothing after the path: sqlite:///absolute/path/ledger.db")
	}
	path = filepath.FromSlash(u.Path)
	if len(path) > 3 && path[0] == filepath.Separator && path[2] == ':' { // /C:/…
		path = path[1:]
	}
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) || strings.HasSuffix(u.Path, "/") {
		return "", failuref(extensions.KindInvalid, "the ledger address names no file").
			WithRemedy("write an absolute path: sqlite:///absolute/path/ledger.db")
	}
	return filepath.Clean(path), nil
}
