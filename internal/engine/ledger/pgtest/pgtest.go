// Package pgtest runs a PostgreSQL server for tests: one per test program, on a free port of the loopback interface,
// with one database per address asked for, until Stop.
package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// NoSkipEnv, set to 1, turns a skip for want of PostgreSQL into a failure.
const NoSkipEnv = "SANDBOXER_NO_SKIP"

type server struct {
	dir, bin string
	port     int
	cmd      *exec.Cmd
	ended    <-chan struct{} // the server's process is gone
	as       *owner

	mu       sync.Mutex
	admin    *pgx.Conn // makes and drops databases: a connection is a process, which costs as much as a drop
	strategy string    // how a database is made
	over     []string  // databases to be dropped; see drop
}

var (
	once   sync.Once
	shared *server
	failed error
)

// Stop ends the server, if one was started; TestMain calls it.
func Stop() error {
	once.Do(func() { failed = errors.New("no more tests") })
	if shared == nil {
		return nil
	}
	return shared.stop()
}

// CA returns the file with the certificate of the authority that signed the server's, which is valid for 127.0.0.1
// only.
func CA(t testing.TB) string {
	t.Helper()
	_ = New(t)
	return filepath.Join(shared.dir, "ca.pem")
}

// Exec runs statements in the database as its superuser.
func Exec(t testing.TB, address, sql string) {
	t.Helper()
	if err := execAt(address, sql); err != nil {
		t.Fatal(err)
	}
}

// TryExec is Exec for statements that may be refused.
func TryExec(address, sql string) error { return execAt(address, sql) }

// User creates a user of the server with a password, and returns the address of the database with both. The user and
// its rights there end with the test.
func User(t testing.TB, address, password string) (name, as string) {
	t.Helper()
	name = "u" + strings.ToLower(rand.Text()[:16])
	Exec(t, address, "CREATE USER "+name+" PASSWORD '"+password+"' IN ROLE "+withPassword)
	t.Cleanup(func() { Exec(t, address, "DROP OWNED BY "+name+" CASCADE; DROP USER "+name) })
	return name, As(t, address, name, password)
}

// As returns the address for another user.
func As(t testing.TB, address, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// withPassword is the role whose members need a password; others are trusted.
const withPassword = "with_password"

const hostBased = "local all all trust\n" +
	"host all +" + withPassword + " 127.0.0.1/32 scram-sha-256\n" +
	"host all all 127.0.0.1/32 trust\n"

// New creates an empty database and returns its address. Without PostgreSQL on this machine the test is skipped, or
// fails under SANDBOXER_NO_SKIP=1. -short skips it.
func New(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts no PostgreSQL")
	}
	once.Do(func() { shared, failed = start() })
	if failed != nil {
		if errors.Is(failed, errAbsent) && os.Getenv(NoSkipEnv) != "1" {
			t.Skip(failed)
		}
		t.Fatal(failed)
	}
	name := "t" + strings.ToLower(rand.Text()[:16])
	if err := shared.exec("CREATE DATABASE " + name + shared.strategy); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.drop(name); err != nil {
			t.Error(err)
		}
	})
	return shared.address(name)
}

var errAbsent = errors.New("PostgreSQL's server programs are not on this machine: install postgresql")

// programs finds the folder with initdb and postgres; distributions keep them off PATH.
func programs() (string, error) {
	if p, err := exec.LookPath("initdb"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			return filepath.Dir(p), nil
		}
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb",
		"/opt/homebrew/opt/postgresql*/bin/initdb"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return filepath.Dir(slices.Max(found)), nil
		}
	}
	return "", errAbsent
}

func start() (*server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	s := &server{bin: bin}
	if s.as, err = otherOwner(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "sbxpg"); err != nil {
		return nil, err
	}
	if err := s.as.own(s.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.run("initdb", "-D", s.dir+"/data", "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8",
		"--locale=C.UTF-8"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	err = errors.Join(s.certify(), os.WriteFile(s.dir+"/data/pg_hba.conf", []byte(hostBased), 0o600))
	if err == nil {
		err = s.serve()
	}
	if err == nil {
		err = s.exec("CREATE ROLE " + withPassword)
	}
	if err == nil {
		err = s.chooseStrategy()
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C.UTF-8"}
	s.as.run(cmd)
	return cmd
}

func (s *server) run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := s.command(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// exec runs a statement as the superuser, beside all databases of tests.
func (s *server) exec(sql string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin == nil || s.admin.IsClosed() {
		if s.admin, err = pgx.Connect(ctx, s.address("postgres")); err != nil {
			return err
		}
	}
	_, err = s.admin.Exec(ctx, sql)
	return err
}

// drop drops a database before long: the server lets a drop wait 100 ms if connections have not quite ended.
func (s *server) drop(name string) error {
	s.mu.Lock()
	s.over = append(s.over, name)
	if len(s.over) <= 8 {
		name = ""
	} else {
		name, s.over = s.over[0], s.over[1:]
	}
	s.mu.Unlock()
	if name == "" {
		return nil
	}
	return s.exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
}

// chooseStrategy avoids that the server, since version 15, also writes a new database's contents to its log.
func (s *server) chooseStrategy() error {
	var version int
	err := s.admin.QueryRow(context.Background(), "SELECT current_setting('server_version_num')::int").Scan(&version)
	if err == nil && version >= 150000 {
		s.strategy = " STRATEGY FILE_COPY"
	}
	return err
}

func execAt(address, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, sql)
	return errors.Join(err, c.Close(ctx))
}

// address is without TLS, which would take a quarter of the tests' time.
func (s *server) address(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

func (s *server) serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		return err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	// synchronous_commit stays on: what was acknowledged survives a crash of the server, which the tests rely on. The machine
	// and its disk do not fail here, so nothing is written twice or waited for.
	s.cmd = s.command(context.Background(), "postgres", "-D", s.dir+"/data", "-p", strconv.Itoa(s.port), "-k", s.dir,
		"-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "autovacuum=off",
		"-c", "ssl=on", "-c", "ssl_cert_file="+s.dir+"/server.pem", "-c", "ssl_key_file="+s.dir+"/server.key", "-c", "log_min_messages=fatal")
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if s.ended, err = startBound(s.cmd); err != nil {
		return err
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := s.exec("SELECT 1")
		if err == nil {
			return nil
		}
		if time.Since(begun) > 30*time.Second {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("PostgreSQL did not start: %w: %s", err, text)
		}
	}
}

// stop ends the server by its manual's "immediate shutdown" and keeps nothing.
func (s *server) stop() error {
	if s.ended != nil {
		if s.cmd.Process.Signal(syscall.SIGQUIT) != nil { // a system without signals
			_ = s.cmd.Process.Kill()
		}
		<-s.ended
	}
	return os.RemoveAll(s.dir)
}
