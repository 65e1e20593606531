package compose

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/template"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// FuzzPolice loads whatever text as a stack. What passes is judged again by the
// oracle; nothing panics, hangs, or shows a canary of the environment.
func FuzzPolice(f *testing.F) {
	for _, dir := range []string{"hostile", "good"} {
		files, err := filepath.Glob("testdata/" + dir + "/*.txtar")
		if err != nil || len(files) == 0 {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			if len(data) > 1<<13 || strings.Contains(file, "bomb") { // slow under a fuzzer, and tried elsewhere
				continue
			}
			for _, part := range fuzzParts(f, data) {
				f.Add(part[0], part[1], part[2])
			}
		}
	}
	f.Fuzz(func(t *testing.T, main, other, env string) {
		if len(main)+len(other)+len(env) > 1<<17 {
			return
		}
		src := pack(t, map[string]string{
			"compose.yaml": main, "sub/a.yaml": other, "a.yaml": other, ".env": env, "app.env": env, "data/x": "1", "Dockerfile": "FROM scratch\n",
			"app/Dockerfile": "FROM scratch\n",
		}, map[string]string{"out": "/etc", "up": "..", "sub/climb": "../..", "in": "data"})
		start := time.Now()
		p, err := Load(t.Context(), Input{Source: src, Env: map[string]string{"X": "../..", "HOST": "host"}, SecretNames: []string{"TOKEN"},
			Allow: []string{"interpolate-environment:HOME", "cap-add:SYS_PTRACE", "devices:/dev/fuse"}})
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		if err != nil {
			var known *extensions.Error
			if !errors.As(err, &known) || known.Kind != extensions.KindInvalid {
				t.Errorf("%v", err)
			}
			return
		}
		if bad := oracle(p); len(bad) > 0 {
			t.Errorf("the model holds %q", bad)
		}
	})
}

// fuzzParts takes the first files of a case as a stack, another file and an env
// file.
func fuzzParts(f *testing.F, data []byte) [][3]string {
	f.Helper()
	s := parseStack(f, data)
	b, err := ReadBundle(f.Context(), s.in.Source)
	if err != nil {
		f.Fatal(err)
	}
	var part [3]string
	for _, name := range b.below(".") {
		e := b.entries[name]
		switch {
		case e.Type != TypeFile:
		case filepath.Ext(name) == ".env":
			part[2] = string(e.data)
		case filepath.Ext(name) == ".yaml" && (part[0] == "" || filepath.Base(name) == "compose.yaml"):
			part[0] = string(e.data)
		case filepath.Ext(name) == ".yaml":
			part[1] = string(e.data)
		}
	}
	return [][3]string{part}
}

// FuzzInterpolate holds our interpolation against the library's: where both
// read a text, they read the same.
func FuzzInterpolate(f *testing.F) {
	quiet()
	for _, c := range interpolated {
		f.Add(c.text)
	}
	vars := map[string]string{"A": "1", "E": "", "B": "${A}"}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		var unset []string
		got, err := testExpander(vars, &unset).substitute(text, 0)
		want, werr := template.Substitute(text, func(n string) (string, bool) { v, ok := vars[n]; return v, ok })
		if err == nil && werr == nil && got != want {
			t.Errorf("%q: the library reads %q, we %q", text, want, got)
		}
	})
}
