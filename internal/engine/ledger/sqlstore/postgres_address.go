package sqlstore

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const postgresForm = "write it as postgres://user@host:5432/database?sslmode=verify-full; " +
	"the password may come from PGPASSWORD or ~/.pgpass"

// parsePostgres reads an address as libpq would, including environment and password file. The one
// difference: if nothing chooses how to encrypt a network connection, the server must prove its identity
// (sslmode=verify-full).
func parsePostgres(address string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(address)
	if err == nil && plaintext(cfg) && !choosesTLS(address) {
		cfg, err = pgx.ParseConfig(verifying(address))
	}
	if err != nil {
		return nil, badPostgres(address, err)
	}
	if cfg.Database == "" {
		return nil, fault.Errorf(extensions.KindInvalid, "the ledger address names no database").
			WithRemedy("%s", postgresForm)
	}
	if plaintext(cfg) {
		return nil, fault.Errorf(extensions.KindInvalid, "the connection to the ledger %s would not be encrypted", shownURL(cfg)).
			WithRemedy("add sslmode=verify-full to the address (and sslrootcert=… for a private CA)")
	}
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, postgresConnect)
	cfg.RuntimeParams["application_name"] = cmp.Or(cfg.RuntimeParams["application_name"], "sandboxer")
	cfg.AfterConnect = recentServer
	return cfg, nil
}

// badPostgres explains an invalid address. The driver's own text quotes it, perhaps with the password.
func badPostgres(address string, err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return fault.Errorf(extensions.KindInvalid, "the ledger address names a file that cannot be read: %w", file).
			WithRemedy("check sslrootcert, sslcert and sslkey in the address, PGSSLROOTCERT, PGSSLCERT and PGSSLKEY in the environment")
	}
	if mode := cmp.Or(queryValue(address, "sslmode"), os.Getenv("PGSSLMODE")); mode != "" && !slices.Contains(sslModes, mode) {
		return fault.Errorf(extensions.KindInvalid, "the ledger address has an unknown sslmode: %q", extensions.Clean(mode, 40)).
			WithRemedy("use sslmode=verify-full")
	}
	return fault.Errorf(extensions.KindInvalid, "the ledger address is not a valid PostgreSQL address").WithRemedy("%s", postgresForm)
}

var sslModes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

func queryValue(address, key string) string {
	_, query, _ := strings.Cut(address, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return ""
	}
	return values.Get(key)
}

// choosesTLS reports whether the address or the environment says how to encrypt.
func choosesTLS(address string) bool {
	return queryValue(address, "sslmode") != "" || queryValue(address, "ssl") != "" || os.Getenv("PGSSLMODE") != ""
}

// verifying adds sslmode=verify-full to an address without an sslmode.
func verifying(address string) string {
	sign := "?"
	if strings.Contains(address, "?") {
		sign = "&"
	}
	return address + sign + "sslmode=verify-full"
}

// plaintext reports whether a network connection may fall back to no TLS.
func plaintext(cfg *pgx.ConnConfig) bool {
	bare := func(host string, t *tls.Config) bool { return t == nil && !onThisMachine(host) }
	if bare(cfg.Host, cfg.TLSConfig) {
		return true
	}
	for _, f := range cfg.Fallbacks {
		if bare(f.Host, f.TLSConfig) {
			return true
		}
	}
	return false
}

func onThisMachine(host string) bool {
	if isSocket(host) || host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

func isSocket(host string) bool { return strings.ContainsAny(host, `/\`) }

// shownURL returns the address for messages and notes: where the ledger is, without user and password,
// which may change.
func shownURL(cfg *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", Host: fmt.Sprintf("%s:%d", bracketed(cfg.Host), cfg.Port), Path: "/" + cfg.Database}
	q := url.Values{}
	if isSocket(cfg.Host) {
		u.Host = ""
		q.Set("host", cfg.Host)
		q.Set("port", fmt.Sprint(cfg.Port))
	}
	if path := cfg.RuntimeParams["search_path"]; path != "" {
		q.Set("search_path", path)
	}
	u.RawQuery = q.Encode()
	return u.String()
}
