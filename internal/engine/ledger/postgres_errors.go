package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// classifyPostgres reads SQLSTATE classes; see the appendix "Error Codes" of
// PostgreSQL's manual.
func classifyPostgres(err error, what string) error {
	wrapped := fmt.Errorf("%s: %w", what, err)
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return failure(extensions.KindTimeout, "", wrapped)
		case lostConnection(err):
			return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("check that the database runs and can be reached from here, then run again")
		}
		return failure(extensions.KindInternal, "", wrapped)
	}
	switch {
	case e.Code == "42501":
		return failure(extensions.KindUnauthorized, "", wrapped).WithRemedy("grant the user SELECT, INSERT, UPDATE and DELETE on the ledger's tables; its owner makes and changes them")
	case strings.HasPrefix(e.Code, "28"):
		return failure(extensions.KindUnauthorized, "", wrapped).WithRemedy("check user and password: in the address, PGPASSWORD or ~/.pgpass")
	case e.Code == "3D000":
		return failure(extensions.KindInvalid, "", wrapped).WithRemedy("make the database first: createdb")
	case e.Code == "53100":
		return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("the database's disk is full: free some space, then run again; nothing of this step was recorded")
	case e.Code == "25006":
		return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("this server only reads (a standby?): name the primary in the address")
	case e.Code == "55P03", e.Code == "57014":
		return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("another run has the ledger locked: wait for it, then run again")
	case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "57P"), strings.HasPrefix(e.Code, "40"):
		return failure(extensions.KindUnavailable, "", wrapped).WithRemedy("the database refuses for now: run again")
	}
	return failure(extensions.KindInternal, "", wrapped)
}

// againPostgres: serialization failure, deadlock, or a connection that went
// away; see write for why that is safe.
func againPostgres(err error) bool {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code == "40001" || e.Code == "40P01" || strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P")
	}
	return lostConnection(err)
}

func lostConnection(err error) bool {
	var n net.Error
	var c *pgconn.ConnectError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, driver.ErrBadConn) ||
		errors.As(err, &c) || errors.As(err, &n) || pgconn.SafeToRetry(err)
}

func uniquePostgres(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "23505" || e.Code == "42P07" || e.Code == "42710")
}
