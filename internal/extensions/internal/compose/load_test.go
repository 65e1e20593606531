package compose

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// tarball is a source held in memory.
type tarball struct{ data []byte }

func (s tarball) Open(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(s.data)), nil
}
func (s tarball) Digest() string { sum := sha256.Sum256(s.data); return hex.EncodeToString(sum[:]) }
func (s tarball) Size() int64    { return int64(len(s.data)) }
func (s tarball) Origin() string { return "a test" }

// pack makes a source of files and of links, which map names to targets.
func pack(t testing.TB, files map[string]string, links map[string]string) tarball {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	write := func(h *tar.Header, data string) {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, data); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range sortedNames(files) {
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			write(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}, "")
			continue
		}
		write(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}, files[name])
	}
	for _, name := range sortedNames(links) {
		write(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: links[name], Mode: 0o777}, "")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return tarball{buf.Bytes()}
}

func sortedNames(m map[string]string) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// stack is a case of testdata: an archive whose comment says, line by line, how
// it is loaded and with which rules it is refused.
type stack struct {
	in      Input
	refused []string
}

func readStack(t testing.TB, file string) stack {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parseStack(t, data)
}

func parseStack(t testing.TB, data []byte) stack {
	t.Helper()
	a := txtar.Parse(data)
	s := stack{in: Input{Env: map[string]string{}}}
	links := map[string]string{}
	for line := range strings.Lines(string(a.Comment)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		switch key {
		case "refused":
			s.refused = strings.Fields(value)
		case "files":
			s.in.Files = strings.Fields(value)
		case "env_files":
			s.in.EnvFiles = strings.Fields(value)
		case "profiles":
			s.in.Profiles = strings.Fields(value)
		case "allow":
			s.in.Allow = strings.Fields(value)
		case "secrets":
			s.in.SecretNames = strings.Fields(value)
		case "publish":
			s.in.Publish = value
		case "deny":
			s.in.Deny = value == "true"
		case "env":
			name, v, _ := strings.Cut(value, "=")
			s.in.Env[name] = v
		case "link":
			name, target, _ := strings.Cut(value, " -> ")
			links[name] = target
		case "about":
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	files := map[string]string{}
	for _, f := range a.Files {
		files[f.Name] = string(f.Data)
	}
	s.in.Source = pack(t, files, links)
	return s
}

func rulesOf(t testing.TB, err error) []string {
	t.Helper()
	var refused *PolicyError
	if !errors.As(err, &refused) {
		t.Fatalf("not a refusal: %v", err)
	}
	if kind := extensions.KindOf(err); kind != extensions.KindInvalid {
		t.Errorf("kind %s", kind)
	}
	var ids []string
	for _, v := range refused.Violations {
		if v.Where == "" || v.Reason == "" || v.Grant == "" {
			t.Errorf("incomplete: %+v", v)
		}
		ids = append(ids, v.Rule)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func TestHostileStacksAreRefusedByTheirRule(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/hostile/*.txtar")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			s := readStack(t, file)
			p, err := Load(t.Context(), s.in)
			if err == nil {
				t.Fatalf("it passed: %+v", p.Compose.Services)
			}
			if got := rulesOf(t, err); !slices.Equal(got, s.refused) {
				t.Errorf("refused by %q, want %q:\n%v", got, s.refused, err)
			}
		})
	}
}

func TestEveryRuleHasAHostileStack(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/hostile/*.txtar")
	shown := map[string]bool{}
	for _, file := range files {
		for _, id := range readStack(t, file).refused {
			shown[id] = true
		}
	}
	for id := range hostileDockerfiles {
		shown[id] = true
	}
	for _, r := range rules {
		// No file can set a field that the library does not have.
		if !shown[r.ID] && r.ID != "unknown-field" {
			t.Errorf("no stack is refused by %s", r.ID)
		}
		delete(shown, r.ID)
	}
	for id := range shown {
		t.Errorf("%s is no rule", id)
	}
}

func TestOrdinaryStacksPass(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/good/*.txtar")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			p, err := Load(t.Context(), readStack(t, file).in)
			if err != nil {
				t.Fatal(err)
			}
			if bad := oracle(p); len(bad) > 0 {
				t.Errorf("the model still holds %q", bad)
			}
		})
	}
}
