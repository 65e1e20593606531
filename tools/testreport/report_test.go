package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func reportOf(t *testing.T, noSkip bool, fine agreed, lines ...string) (bool, string) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out)
	if err := r.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	ok := r.close(noSkip, fine)
	return ok, out.String()
}

const (
	passA   = `{"Action":"pass","Package":"p","Test":"TestA"}`
	okLine  = `{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`
	skipOut = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: needs Docker\n"}`
	skipB   = `{"Action":"skip","Package":"p","Test":"TestB"}`
	failOut = `{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: broken\n"}`
	failC   = `{"Action":"fail","Package":"p","Test":"TestC"}`
	failPkg = `{"Action":"fail","Package":"p"}`
)

func TestReport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		noSkip bool
		lines  []string
		ok     bool
		want   []string
	}{
		"passed":             {false, []string{passA, okLine}, true, []string{"ok  \tp", "1 passed, 0 failed, 0 skipped"}},
		"skip tells why":     {false, []string{passA, skipOut, skipB}, true, []string{"p TestB: b_test.go:3: needs Docker", "1 skipped"}},
		"skip forbidden":     {true, []string{passA, skipOut, skipB}, false, []string{"Skips are forbidden"}},
		"failed with output": {false, []string{passA, failOut, failC, failPkg}, false, []string{"c_test.go:9: broken", "FAILED p TestC", "1 passed, 1 failed"}},
		"package broke":      {false, []string{passA, failPkg}, false, []string{"FAILED p\n", "1 failed"}},
		"nothing ran":        {false, nil, false, []string{"No test ran"}},
		"go's own words":     {false, []string{"go: no such module", passA}, true, []string{"go: no such module"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ok, out := reportOf(t, c.noSkip, nil, c.lines...)
			if ok != c.ok {
				t.Errorf("ok = %v, want %v\n%s", ok, c.ok, out)
			}
			for _, w := range c.want {
				if !strings.Contains(out, w) {
					t.Errorf("missing %q in\n%s", w, out)
				}
			}
		})
	}
}

func TestAgreedSkips(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "skips")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# why\n\np TestB # proved elsewhere\n")
	fine, err := readAgreed(path)
	if err != nil {
		t.Fatal(err)
	}
	if ok, out := reportOf(t, true, fine, passA, skipOut, skipB); !ok || !strings.Contains(out, "Skipped, as agreed (1)") {
		t.Errorf("an agreed skip is refused:\n%s", out)
	}
	write("p TestBB # another\n")
	if fine, err = readAgreed(path); err != nil {
		t.Fatal(err)
	}
	if ok, out := reportOf(t, true, fine, passA, skipOut, skipB); ok {
		t.Errorf("a skip nobody agreed to passes:\n%s", out)
	}
	write("p TestB\n")
	if _, err = readAgreed(path); err == nil {
		t.Error("a skip is agreed without a reason")
	}
}
