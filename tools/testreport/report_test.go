package main

import (
	"fmt"
	"os"
	"os/exec"
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
	var again strings.Builder
	ok := r.close(noSkip, fine, &again)
	if ok == (again.Len() > 0) {
		t.Errorf("ok = %v, and told again: %q", ok, again.String())
	}
	return ok, out.String()
}

const (
	passA    = `{"Action":"pass","Package":"p","Test":"TestA"}`
	okLine   = `{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`
	skipOut  = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: needs Docker\n"}`
	skipB    = `{"Action":"skip","Package":"p","Test":"TestB"}`
	shortOut = `{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: -short: starts no server\n"}`
	failOut  = `{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: broken\n"}`
	failC    = `{"Action":"fail","Package":"p","Test":"TestC"}`
	failPkg  = `{"Action":"fail","Package":"p"}`
)

func TestReport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		noSkip bool
		lines  []string
		ok     bool
		want   []string
	}{
		"passed":         {false, []string{passA, okLine}, true, []string{"ok  \tp", "1 passed, 0 failed, 0 skipped"}},
		"skip tells why": {false, []string{passA, skipOut, skipB}, true, []string{"p TestB: b_test.go:3: needs Docker", "1 skipped"}},
		"skip forbidden": {true, []string{passA, skipOut, skipB}, false, []string{"Skips are forbidden"}},
		"left out by -short": {false, []string{passA, shortOut, skipB}, true,
			[]string{"Left out by -short", "  1: starts no server", "1 skipped"}},
		"failed with output": {false, []string{passA, failOut, failC, failPkg}, false,
			[]string{"c_test.go:9: broken", "FAILED p TestC", "1 passed, 1 failed"}},
		"package broke":  {false, []string{passA, failPkg}, false, []string{"FAILED p\n", "1 failed"}},
		"nothing ran":    {false, nil, false, []string{"No test ran"}},
		"go's own words": {false, []string{"go: no such module", passA}, true, []string{"go: no such module"}},
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

func TestTheEndTellsFailuresOnceMore(t *testing.T) {
	t.Parallel()
	output := func(test, text string) string {
		return fmt.Sprintf(`{"Action":"output","Package":"p","Test":%q,"Output":%q}`, test, text+"\n")
	}
	var lines []string
	add := func(test string, from, to int) {
		for i := from; i < to; i++ {
			lines = append(lines, output(test, fmt.Sprintf("%s says %d.", test, i)))
		}
	}
	add("TestLong", 0, 200)
	lines = append(lines, `{"Action":"run","Package":"p","Test":"TestPanics"}`, output("TestPanics", "panic: test timed out after 9m0s"))
	add("TestPanics", 0, 200)
	add("TestLong", 200, 201)
	lines = append(lines, `{"Action":"build-output","ImportPath":"q [q.test]","Output":"q_test.go:1: no such name\n"}`,
		output("TestParent", "=== RUN   TestParent"), output("TestParent", "--- FAIL: TestParent (0.1s)"),
		`{"Action":"fail","Package":"p","Test":"TestLong"}`,
		`{"Action":"fail","Package":"p","Test":"TestParent"}`, failPkg,
		`{"Action":"fail","Package":"q","FailedBuild":"q [q.test]"}`, passA)
	_, out := reportOf(t, false, nil, lines...)
	_, end, _ := strings.Cut(out, "--- once more: ")
	for want, said := range map[string]bool{
		"TestLong says 200.": true, "TestLong says 141.": true, "TestLong says 140.": false,
		"panic: test timed out after 9m0s": true, "TestPanics says 58.": true, "TestPanics says 59.": false,
		"once more: p TestParent": false, "q_test.go:1: no such name": true,
		"FAILED p TestLong\nFAILED p TestParent\nFAILED p TestPanics\nFAILED p\nFAILED q\n": true,
	} {
		if strings.Contains(end, want) != said {
			t.Errorf("%q at the end: not %v:\n%s", want, said, end)
		}
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

// A module with two packages whose tests leave some to another run.
func TestWhatIsLeftToAnotherRunIsRunThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module m\n\ngo 1.24\n")
	const head = "package %s\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" +
		"func leave(t *testing.T) {\n\tif os.Getenv(\"FIRST\") != \"\" {\n\t\tt.Skip(%q)\n\t}\n}\n\n"
	for _, name := range []string{"a", "b"} {
		write(name+"/"+name+"_test.go", fmt.Sprintf(head, name, forLater+": why")+
			"func TestWatched(t *testing.T) {\n\tif os.Getenv(\"FIRST\") == \"\" { t.Fatal(\"once more\") }\n}\n\n"+
			"func TestLeft"+name+"(t *testing.T) { leave(t) }\n\n"+
			"func TestParts(t *testing.T) {\n\tfor _, part := range []string{\"one (1+1)\", \"other\"} {\n"+
			"\t\tt.Run(part, func(t *testing.T) { if part != \"other\" { leave(t) } })\n\t}\n}\n")
	}
	tool := filepath.Join(dir, "testreport")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(first string, args ...string) (string, error) {
		cmd := exec.Command(tool, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "SANDBOXER_NO_SKIP=1", "FIRST="+first)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("yes", "--", "-count=1", "./a", "./b"); err == nil || !strings.Contains(out, "Skips are forbidden") {
		t.Errorf("nothing takes what is left, and that is well: %v\n%s", err, out)
	}
	if out, err := run("yes", "-later", "left", "--", "-count=1", "./a", "./b"); err != nil || !strings.Contains(out, "\n4 tests are left") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := run("", "-of", "left", "--", "-count=1"); err != nil || !strings.Contains(out, "\n6 passed, 0 failed") {
		t.Errorf("%v\n%s", err, out)
	}
	write("left", "m/a TestLefta\nm/b TestGone\n")
	if out, err := run("", "-of", "left", "--", "-count=1"); err == nil || !strings.Contains(out, "NOT RUN m/b TestGone") {
		t.Errorf("a test that does not run is not missed: %v\n%s", err, out)
	}
	for _, none := range []string{"left", "gone"} {
		write("left", "")
		if out, err := run("", "-of", none, "--", "-count=1"); err != nil || out != "" {
			t.Errorf("nothing was left in %s: %v\n%s", none, err, out)
		}
	}
}

// A module whose tests are flaky, broken or racy in ways that the environment chooses.
func TestFailuresAreRunOnceMoreAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.24\n",
		"a/a_test.go": `package a

import (
	"os"
	"testing"
)

func once(t *testing.T) {
	if f, err := os.OpenFile(t.Name(), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = f.Close()
		t.Error("the first time it fails")
	}
}

func TestFlaky(t *testing.T)     { once(t) }
func TestFlakyToo(t *testing.T)  { once(t) }
func TestFine(t *testing.T)      {}
func TestBroken(t *testing.T)    { t.Error("always") }
func TestPanics(t *testing.T)    { once(t); if t.Failed() { panic("gone") } }
func TestSays(t *testing.T)      { once(t); t.Log("WARNING: DATA RACE") }
`} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		only  string
		limit string
		ok    bool
		want  string
	}{
		"one":            {"TestFlaky$|TestFine", "1", true, "FLAKY m/a TestFlaky: "},
		"too many":       {"TestFlaky", "1", false, "FAILED m/a TestFlakyToo"},
		"two":            {"TestFlaky", "2", true, "FLAKY m/a TestFlakyToo: "},
		"never":          {"TestFlaky", "0", false, "FAILED m/a TestFlakyToo"},
		"broken":         {"TestFlaky$|TestBroken", "3", false, "FAILED m/a TestBroken"},
		"a panic":        {"TestPanics", "3", false, "FAILED m/a TestPanics"},
		"as a data race": {"TestSays", "3", false, "FAILED m/a TestSays"},
	} {
		marks, err := filepath.Glob(filepath.Join(dir, "a", "Test*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range marks {
			_ = os.Remove(m)
		}
		failures := filepath.Join(t.TempDir(), "failures")
		cmd := exec.Command(os.Args[0], "-again", c.limit, "-failures", failures, "--", "-count=1", "-run", c.only, "./a")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TESTREPORT_MAIN=1", "GOFLAGS=", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		told, _ := os.ReadFile(failures)
		if (err == nil) != c.ok || !strings.Contains(string(out), c.want) || !strings.Contains(string(told), c.want) {
			t.Errorf("%s: %v, want ok %v and %q:\n%s\ntold: %s", name, err, c.ok, c.want, out, told)
		}
	}
}

func TestMain(m *testing.M) {
	if os.Getenv("TESTREPORT_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}
