package sqlstore_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/pgtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// with adds to what follows the question mark of an address.
func with(t testing.TB, address string, params ...string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for _, p := range params {
		k, v, _ := strings.Cut(p, "=")
		q.Set(k, v)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// refused demands the kind, a remedy that says so much, and no password. It
// must not take the time of repeated attempts.
func refused(t *testing.T, address string, kind extensions.Kind, remedy string) {
	t.Helper()
	for _, readOnly := range []bool{true, false} {
		begun := time.Now()
		l, err := sqlstore.Open(ctx, address, sqlstore.Options{ReadOnly: readOnly})
		if err == nil {
			t.Errorf("%s opened", address)
			_ = l.Close()
			continue
		}
		if !extensions.IsKind(err, kind) || !strings.Contains(extensions.RemedyOf(err), remedy) ||
			strings.Contains(err.Error()+extensions.RemedyOf(err), "hush") {
			t.Errorf("read only %t: %s %v (%s)", readOnly, extensions.KindOf(err), err, extensions.RemedyOf(err))
		}
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("it took %s", took)
		}
	}
}

func TestAPostgresThatCannotBeUsedSaysWhy(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	user, known := pgtest.User(t, address, "hush-hush")
	for name, c := range map[string]struct {
		address string
		kind    extensions.Kind
		remedy  string
	}{
		"wrong password":             {pgtest.As(t, address, user, "hush-more"), extensions.KindUnauthorized, "~/.pgpass"},
		"nobody's name":              {pgtest.As(t, address, "nobody", "hush"), extensions.KindUnauthorized, "the user and the password"},
		"no database":                {strings.Replace(known, "/t", "/other", 1), extensions.KindInvalid, "createdb"},
		"no such parameter":          {with(t, known, "pool_max_conns=3"), extensions.KindInvalid, "after ?"},
		"a schema that is not there": {with(t, known, "search_path=nowhere"), extensions.KindUnauthorized, "search_path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, c.address, c.kind, c.remedy)
		})
	}
}

func TestWithoutTheRightToMakeTablesThatIsSaid(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	pgtest.Exec(t, address, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	_, as := pgtest.User(t, address, "hush-hush")
	_, err := sqlstore.Open(ctx, as, sqlstore.Options{})
	if !extensions.IsKind(err, extensions.KindUnauthorized) || !strings.Contains(extensions.RemedyOf(err), "owner") ||
		strings.Contains(err.Error(), "hush") {
		t.Errorf("%v (%s)", err, extensions.RemedyOf(err))
	}
	l, err := sqlstore.Open(ctx, as, sqlstore.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if l.ID() != "" {
		t.Error("an empty database has a ledger")
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnotherProgramsTablesAreLeftAlone(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	pgtest.Exec(t, address, "CREATE TABLE migrations (id INT, name TEXT); CREATE TABLE meta (id INT)")
	refused(t, address, extensions.KindInvalid, "a separate database or schema")
	l, err := sqlstore.Open(ctx, with(t, address, "search_path=ours"), sqlstore.Options{})
	if err == nil {
		_ = l.Close()
		t.Fatal("a schema that is not there was used")
	}
	pgtest.Exec(t, address, "CREATE SCHEMA ours")
	if l, err = sqlstore.Open(ctx, with(t, address, "search_path=ours"), sqlstore.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// opensTwice demands that nothing is read where there is no ledger, that one is
// made, and that it is the same one the next time.
func opensTwice(t *testing.T, address string) {
	t.Helper()
	var id string
	for _, readOnly := range []bool{true, false, true} {
		l, err := sqlstore.Open(ctx, address, sqlstore.Options{ReadOnly: readOnly})
		if err != nil {
			t.Fatalf("read only %t: %v (%s)", readOnly, err, extensions.RemedyOf(err))
		}
		if id != "" && l.ID() != id {
			t.Errorf("another ledger %q than %q", l.ID(), id)
		}
		id = l.ID()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnotherProgramsTablesInAnotherSchemaAreNoLedger(t *testing.T) {
	t.Parallel()
	for _, tables := range []string{
		"CREATE TABLE events (id INT); CREATE TABLE accounts (id INT)",
		"CREATE TABLE meta (id INT); CREATE TABLE sandboxes (id INT)",
		"CREATE TABLE migrations (id INT, name TEXT)",
	} {
		address := pgtest.New(t)
		pgtest.Exec(t, address, tables+"; CREATE SCHEMA ours")
		opensTwice(t, with(t, address, "search_path=ours,public"))
	}
}

func TestALedgerIsFoundBehindAnEmptySchema(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	opensTwice(t, address)
	pgtest.Exec(t, address, "CREATE SCHEMA ours")
	shadowed := with(t, address, "search_path=ours,public")
	l, err := sqlstore.Open(ctx, shadowed, sqlstore.Options{ReadOnly: true})
	if err != nil || l.ID() == "" {
		t.Fatalf("the ledger was not found: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	pgtest.Exec(t, address, "CREATE TABLE ours.events (id INT)") // which every statement would take for the ledger's
	refused(t, shadowed, extensions.KindInternal, "search_path")
}

func TestTheServerHasToProveWhoItIs(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	ca := pgtest.CA(t)
	l, err := sqlstore.Open(ctx, with(t, address, "sslmode=verify-full", "sslrootcert="+ca), sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	refused(t, with(t, address, "sslmode=verify-full"), extensions.KindUnauthorized, "sslrootcert")
	named := strings.Replace(address, "127.0.0.1", "localhost", 1)
	refused(t, with(t, named, "sslmode=verify-full", "sslrootcert="+ca), extensions.KindUnauthorized, "in the certificate")
}

// server answers each connection of a driver with what answer says.
func server(t *testing.T, answer func(*pgproto3.Backend, net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(pgproto3.NewBackend(c, c), c)
			_ = c.Close()
		}
	}()
	return "postgres://me:hush-hush@" + l.Addr().String() + "/ledger"
}

func TestAnOldServerIsRefused(t *testing.T) {
	t.Parallel()
	address := server(t, func(b *pgproto3.Backend, c net.Conn) {
		first, err := b.ReceiveStartupMessage()
		if _, ssl := first.(*pgproto3.SSLRequest); err == nil && ssl {
			_, _ = c.Write([]byte("N"))
			_, err = b.ReceiveStartupMessage()
		}
		if err != nil {
			return
		}
		b.Send(&pgproto3.AuthenticationOk{})
		b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "9.6.24 (Debian)"})
		b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		_ = b.Flush()
		_, _ = b.Receive()
	})
	refused(t, address, extensions.KindUnsupported, "PostgreSQL 13")
}

func TestAServerWithoutTLSIsToldApart(t *testing.T) {
	t.Parallel()
	address := server(t, func(b *pgproto3.Backend, c net.Conn) {
		if _, err := b.ReceiveStartupMessage(); err == nil {
			_, _ = c.Write([]byte("N"))
		}
	})
	refused(t, with(t, address, "sslmode=require"), extensions.KindInvalid, "turn on ssl")
}

func TestThatNobodyAnswersIsToldInTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it accepts nobody: the kernel does, and no answer comes
	refused(t, "postgres://me:hush-hush@"+l.Addr().String()+"/ledger?connect_timeout=3", extensions.KindUnavailable,
		"reachable from this machine")
	refused(t, "postgres://me:hush-hush@127.0.0.1:1/ledger", extensions.KindUnavailable, "reachable from this machine")
}

func TestAnErrorOfTheConnectionIsOneLine(t *testing.T) {
	t.Parallel()
	_, err := sqlstore.Open(ctx, "postgres://me@127.0.0.1:1,127.0.0.1:2/ledger?sslmode=prefer", sqlstore.Options{})
	if err == nil || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), "127.0.0.1:2 ") != 1 {
		t.Errorf("%v", err)
	}
}

func TestTheEnvironmentAndAFileTellThePassword(t *testing.T) {
	address := pgtest.New(t)
	user, _ := pgtest.User(t, address, "hush-hush")
	bare := strings.Replace(address, "postgres@", user+"@", 1)
	open := func() error {
		l, err := sqlstore.Open(context.Background(), bare, sqlstore.Options{ReadOnly: true})
		if err != nil {
			return err
		}
		return l.Close()
	}
	t.Setenv("PGPASSFILE", t.TempDir()+"/none")
	if err := open(); !extensions.IsKind(err, extensions.KindUnauthorized) {
		t.Errorf("without: %v", err)
	}
	t.Setenv("PGPASSWORD", "hush-hush")
	if err := open(); err != nil {
		t.Errorf("PGPASSWORD: %v", err)
	}
	t.Setenv("PGPASSWORD", "")
	file := t.TempDir() + "/pgpass"
	if err := os.WriteFile(file, []byte("*:*:*:"+user+":hush-hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSFILE", file)
	if err := open(); err != nil {
		t.Errorf("PGPASSFILE: %v", err)
	}
}

func TestWhatIsShownOfAnAddressTellsNoUserAndNoPassword(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"sqlite:///a/b.db":                                      "sqlite:///a/b.db",
		"postgres://me:hush@db.example/l":                       "postgres://db.example:5432/l",
		"postgres://db.example/l?password=hush&search_path=own": "postgres://db.example:5432/l?search_path=own",
		"postgres://me:hush@/l?host=/run/pg":                    "postgres:///l?host=%2Frun%2Fpg&port=5432",
		"postgres://me:hush@[2001:db8::1]/l":                    "postgres://[2001:db8::1]:5432/l",
		"postgres://me:hush@db:x/l":                             "postgres://",
	} {
		if got := sqlstore.ShownURL(address); got != want {
			t.Errorf("%s is shown as %s", address, got)
		}
	}
}
