package sqlstore

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// DefaultURL returns the URL of the ledger in a user's state folder, an absolute path.
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

// isPostgres reports a PostgreSQL address and returns it with a lower-case scheme.
func isPostgres(address string) (normal string, is bool) {
	name, rest, colon := strings.Cut(address, ":")
	if name = strings.ToLower(name); !colon || name != "postgres" && name != "postgresql" {
		return address, false
	}
	return name + ":" + rest, true
}

// Shared reports whether the ledger at address is, or may be, on another machine.
func Shared(address string) bool {
	_, is := isPostgres(address)
	return is
}

// ShownURL returns the address, still valid for Open, without user and password. All users of one ledger
// see the same text.
func ShownURL(address string) string {
	address, shared := isPostgres(address)
	if !shared {
		return address
	}
	cfg, err := parsePostgres(address)
	if err != nil {
		return "postgres://"
	}
	return shownURL(cfg)
}

// CheckURL returns KindInvalid if Open would not understand the address. It does not access the ledger.
func CheckURL(address string) (err error) {
	if address, shared := isPostgres(address); shared {
		_, err = parsePostgres(address)
	} else {
		_, err = parseURL(address)
	}
	return err
}

// Open opens the ledger at sqlite:///absolute/path or postgres://…. It creates the file or the tables
// unless ReadOnly.
func Open(ctx context.Context, address string, o Options) (*ledger.Ledger, error) {
	if address, shared := isPostgres(address); shared {
		return openPostgres(ctx, address, o)
	}
	path, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	return openSQLite(ctx, path, o)
}

const addressForm = "write it as sqlite:///absolute/path/ledger.db, or postgres://user@host/database to share it between machines"

func parseURL(address string) (path string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fault.Errorf(extensions.KindInvalid, "the ledger address is not a URL").WithRemedy(addressForm)
	}
	switch u.Scheme {
	case "sqlite":
	case "http", "https":
		return "", fault.Errorf(extensions.KindInvalid, "a ledger is a file or a PostgreSQL database, not a server reached over %s",
			u.Scheme).
			WithRemedy("to share a ledger between machines, use PostgreSQL: postgres://user@host/database")
	default:
		return "", fault.Errorf(extensions.KindInvalid, "a ledger address starts with sqlite:/// or postgres://, not %q",
			extensions.Clean(u.Scheme, 20)).
			WithRemedy(addressForm)
	}
	if u.Host != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fault.Errorf(extensions.KindInvalid, "the ledger address has more than a path").
			WithRemedy("write it with three slashes and nothing after the path: sqlite:///absolute/path/ledger.db")
	}
	path = filepath.FromSlash(u.Path)
	if len(path) > 3 && path[0] == filepath.Separator && path[2] == ':' { // /C:/…
		path = path[1:]
	}
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) || strings.HasSuffix(u.Path, "/") {
		return "", fault.Errorf(extensions.KindInvalid, "the ledger address names no file").
			WithRemedy("write an absolute path: sqlite:///absolute/path/ledger.db")
	}
	return filepath.Clean(path), nil
}
