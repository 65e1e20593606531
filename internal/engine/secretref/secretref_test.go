//go:build unix

package secretref

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMalformedReferencesAreRefused(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{
		"", "hunter2", "env://", "env://A B", "env://A=B", "env://1A", "env://A\n", "env:A", "ENV://A",
		"file://", "file://relative", "file://host/path", "file:///dir/", "file:///a?b", "file:///a#b", "file:///a%zz", "file:///a%00b",
		"file:///a\nb", "file://~user/x",
		"exec://", "exec:///", "exec://bin/x", "exec://./x", "exec://x?argv=1", "exec://x?arg=%zz", "exec://x?arg=%00", "exec://x#y", "exec://x?",
		"exec://x?&", "http://x/y",
		"env://" + strings.Repeat("A", 5000),
	} {
		err := Parse(ref)
		if ref == "exec://x?" { // an empty query is no query
			if err != nil {
				t.Errorf("%q: %v", ref, err)
			}
			continue
		}
		if !extensions.IsKind(err, extensions.KindInvalid) || extensions.RemedyOf(err) == "" {
			t.Errorf("%q: got %v", ref, err)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.ContainsAny(err.Error(), "\n\x00")) {
			t.Errorf("%q: the message repeats it: %v", ref, err)
		}
	}
	for _, ref := range []string{"env://A_1", "file:///a%20b", "file://~/x", "exec://pass?arg=show&arg=a%2Fb", "exec:///bin/x",
		"exec://~/bin/x"} {
		if err := Parse(ref); err != nil {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

func write(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestValuesAreFound(t *testing.T) {
	t.Parallel()
	path := write(t, "a secret", "line one\nline two\r\n", 0o600)
	opts := Options{Home: filepath.Dir(path), LookupEnv: func(n string) (string, bool) { return "from " + n + "\n", n == "TOKEN" }}
	for ref, want := range map[string]string{
		"env://TOKEN": "from TOKEN\n",
		"file://" + strings.ReplaceAll(path, " ", "%20"):        "line one\nline two",
		"file://~/a%20secret":                                   "line one\nline two",
		"exec://printf?arg=%25s-%25s%0A&arg=a+b&arg=$(id);%22'": "a b-$(id);\"'",
		"exec:///bin/cat":                                       "",
	} {
		got, err := Resolve(t.Context(), ref, opts)
		if want == "" { // no input: /dev/null
			if !extensions.IsKind(err, extensions.KindUnauthorized) {
				t.Errorf("%s: got %v", ref, err)
			}
			continue
		}
		if err != nil || got.Reveal() != want {
			t.Errorf("%s = %q, %v; want %q", ref, got.Reveal(), err, want)
		}
	}
}

func TestWhatCannotBeHadNamesTheReferenceNeverTheValue(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-7f3a"
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	fail := write(t, "fail", "#!/bin/sh\necho "+canary+"\necho \"bad "+canary+" \x1b[31m\" >&2\nexit 3\n", 0o700)
	opts := Options{LookupEnv: func(n string) (string, bool) { return "", n == "EMPTY" }}
	for ref, kind := range map[string]extensions.Kind{
		"env://UNSET":                  extensions.KindUnauthorized,
		"env://EMPTY":                  extensions.KindUnauthorized,
		"file:///none/such":            extensions.KindUnauthorized,
		"file://" + filepath.Dir(fifo): extensions.KindInvalid,
		"file://" + fifo:               extensions.KindInvalid,
		"file:///dev/zero":             extensions.KindInvalid,
		"file://" + write(t, "big", strings.Repeat("x", 70000), 0o600): extensions.KindInvalid,
		"file://" + write(t, "nul", canary+"\x00", 0o600):              extensions.KindInvalid,
		"file://" + write(t, "open", canary, 0o606):                    extensions.KindUnauthorized,
		"file://" + write(t, "newline", "\n", 0o600):                   extensions.KindUnauthorized,
		"exec://no-such-program-here":                                  extensions.KindUnauthorized,
		"exec://" + fail + "?arg=" + canary:                            extensions.KindUnauthorized,
		"exec://yes?arg=" + canary:                                     extensions.KindInvalid,
	} {
		_, err := Resolve(t.Context(), ref, opts)
		if !extensions.IsKind(err, kind) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: got %v (%s)", ref, err, extensions.KindOf(err))
			continue
		}
		if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: leaks: %v", ref, err)
		}
		if target, _, _ := strings.Cut(ref, "?"); !strings.Contains(err.Error(), target) {
			t.Errorf("%s is not named: %v", ref, err)
		}
	}
}

func TestWhatAFailingProgramPrintsIsNeverRepeated(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo hunter2; echo hunter2 >&2; exit 3":        "exit status 3",
		"echo hunter2 >&2; exit 1":                      "exit status 1",
		"printf 'aHVudGVyMg== hunter2' >&2; kill -9 $$": "signal: killed",
	} {
		ref := "exec://sh?arg=-c&arg=" + url.QueryEscape(script)
		_, err := Resolve(t.Context(), ref, Options{})
		text := fmt.Sprint(err)
		if !strings.Contains(text, want) || strings.Contains(text, "hunter2") || strings.Contains(text, "aHVudGVyMg") {
			t.Errorf("%s: got %v", script, err)
		}
		if remedy := extensions.RemedyOf(err); !strings.Contains(remedy, "by hand") || strings.Contains(remedy, "hunter2") {
			t.Errorf("%s: the remedy is %q", script, remedy)
		}
	}
}

func TestALongestValueFits(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("x", MaxValueBytes)
	got, err := Resolve(t.Context(), "file://"+write(t, "max", want+"\r\n", 0o600), Options{})
	if err != nil || got.Reveal() != want {
		t.Errorf("%d bytes, %v", len(got.Reveal()), err)
	}
}

func TestAFileOthersCanReadIsWarnedAbout(t *testing.T) {
	t.Parallel()
	var warned []string
	_, err := Resolve(t.Context(), "file://"+write(t, "f", "CANARY", 0o644), Options{Warn: func(s string) { warned = append(warned, s) }})
	if err != nil || len(warned) != 1 || strings.Contains(warned[0], "CANARY") {
		t.Errorf("%v, warned %q", err, warned)
	}
}

func TestATimeoutEndsTheProgramAndWhatItStarted(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	script := write(t, "slow", "#!/bin/sh\nsleep 600 &\necho $! >"+pid+"\nwait\n", 0o700)
	_, err := Resolve(t.Context(), "exec://sh?arg="+script, Options{Timeout: 500 * time.Millisecond})
	if !extensions.IsKind(err, extensions.KindTimeout) {
		t.Fatalf("got %v", err)
	}
	b, err := os.ReadFile(pid)
	if err != nil {
		t.Skip("the machine was too slow to start the program")
	}
	var child int
	_, _ = fmt.Sscan(string(b), &child)
	for range 200 {
		if syscall.Kill(child, 0) != nil || zombie(child) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d lives on", child)
}

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func TestACancelledContextRunsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	made := filepath.Join(t.TempDir(), "made")
	if _, err := Resolve(ctx, "exec://touch?arg="+made, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(made); err == nil {
		t.Error("the program ran")
	}
}
