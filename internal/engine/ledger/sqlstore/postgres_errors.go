package sqlstore

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// classifyPostgres maps SQLSTATE classes to kinds; see the appendix "Error Codes" of PostgreSQL's manual.
func classifyPostgres(err error, what string) error {
	wrapped := fmt.Errorf("%s: %w", what, shortened(err))
	var e *pgconn.PgError
	var old *oldServer
	if !errors.As(err, &e) {
		switch {
		case errors.As(err, &old):
			return fault.New(extensions.KindUnsupported, "", wrapped).WithRemedy("use PostgreSQL %d or later", oldestPostgres)
		case errors.Is(err, errNoSchema):
			return fault.New(extensions.KindUnauthorized, "",
				wrapped).WithRemedy("grant the user USAGE on the schema with the ledger's tables, and set search_path to that schema")
		case untrusted(err):
			return fault.New(extensions.KindUnauthorized, "", wrapped).
				WithRemedy("set sslrootcert=… to the CA that signed the server's certificate, and use the host name in the certificate")
		case noTLS(err):
			return fault.New(extensions.KindInvalid, "", wrapped).
				WithRemedy("turn on ssl at the server: sandboxer never sends unencrypted data over a network")
		case !notReached(err) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)):
			return fault.New(fault.Stopped(err), "", wrapped)
		case lostConnection(err):
			return fault.New(extensions.KindUnavailable, "",
				wrapped).WithRemedy("check that the database is running and reachable from this machine, then run again")
		}
		return fault.New(extensions.KindInternal, "", wrapped)
	}
	switch {
	case e.Code == "42501":
		return fault.New(extensions.KindUnauthorized, "", wrapped).
			WithRemedy("let the owner of the tables create or migrate them (`sandboxer sweep` as that user), and grant this user " +
				"the privileges that the guide to a shared ledger lists")
	case strings.HasPrefix(e.Code, "28"):
		return fault.New(extensions.KindUnauthorized, "", wrapped).
			WithRemedy("check the user and the password in the address, PGPASSWORD or ~/.pgpass")
	case e.Code == "3D000":
		return fault.New(extensions.KindInvalid, "", wrapped).WithRemedy("create the database first: createdb")
	case e.Code == "53100":
		return fault.New(extensions.KindUnavailable, "",
			wrapped).WithRemedy("the database's disk is full: free some space, then run again; this step was not recorded")
	case e.Code == "25006":
		return fault.New(extensions.KindUnavailable, "",
			wrapped).WithRemedy("this server is read-only (a standby?): use the primary's address")
	case e.Code == "42703", e.Code == "42P01":
		return fault.New(extensions.KindInvalid, "",
			wrapped).WithRemedy("the schema has tables of another program: use a separate database or schema for the ledger " +
			"(search_path=… in the address)")
	case e.Code == "42704", e.Code == "08P01":
		return fault.New(extensions.KindInvalid, "",
			wrapped).WithRemedy("the server refuses a session parameter: check the parameters after ? in the address; a pooler must use " +
			"session mode")
	case e.Code == "55P03", e.Code == "57014":
		return fault.New(extensions.KindUnavailable, "", wrapped).WithRemedy("another run has the ledger locked: wait for it, then run again")
	case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "57P"), strings.HasPrefix(e.Code, "40"):
		return fault.New(extensions.KindUnavailable, "", wrapped).WithRemedy("the database refused this temporarily: run again")
	}
	return fault.New(extensions.KindInternal, "", wrapped)
}

// attempts is a failure to connect. The driver tries each address with and without TLS and reports each on
// a line of its own.
type attempts struct{ error }

func (a attempts) Unwrap() error { return a.error }

func (a attempts) Error() string {
	var said []string
	for line := range strings.Lines(a.error.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(said, line) {
			said = append(said, line)
		}
	}
	if len(said) < 2 {
		return strings.Join(said, "")
	}
	return said[0] + " " + strings.Join(said[1:], "; ")
}

// notReached reports a failure to connect, including a connect timeout, which is not the caller's.
func notReached(err error) bool {
	var c *pgconn.ConnectError
	return errors.As(err, &c)
}

func shortened(err error) error {
	if notReached(err) {
		return attempts{err}
	}
	return err
}

// oldServer is a server without the features that the statements need.
type oldServer struct{ version string }

func (e *oldServer) Error() string {
	return "the server is PostgreSQL " + extensions.Clean(e.version, 40)
}

var errNoSchema = errors.New("this user has USAGE on no schema of the database")

// untrusted reports that the server could not prove its identity.
func untrusted(err error) bool {
	var c *tls.CertificateVerificationError
	return errors.As(err, &c)
}

func noTLS(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server refused TLS connection")
}

// againPostgres reports a serialization failure, a deadlock, or a lost or refused connection; write
// explains why repeating is safe.
func againPostgres(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		switch {
		case e.Code == "08P01":
			return false
		case e.Code == "40001", e.Code == "40P01", e.Code == "53300", strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "57P"):
			return true
		}
		return false
	}
	return lostConnection(err)
}

// lostConnection reports that the server was not reached, or no longer, and may be reachable soon.
func lostConnection(err error) bool {
	var n interface{ Timeout() bool } // as returned by package net
	var old *oldServer
	if errors.As(err, &old) || untrusted(err) || noTLS(err) {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, driver.ErrBadConn) ||
		notReached(err) || errors.As(err, &n) || pgconn.SafeToRetry(err)
}

func uniquePostgres(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "23505" || e.Code == "42P07" || e.Code == "42710")
}
