package importrules

import (
	"fmt"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostMethods of an interface of ours, so that each consumer asks for little.
const mostMethods = 8

func TestInterfacesAreSmall(t *testing.T) {
	t.Parallel()
	for _, wide := range released(t).wide(mostMethods) {
		t.Error(wide)
	}
}

// wide returns the declared interfaces with more than most methods, embedded ones included. The suite's stand-in for
// testing.TB has that one's methods.
func (p *program) wide(most int) (out []string) {
	for _, pkg := range p.ours {
		for _, name := range pkg.Scope().Names() {
			o, ok := pkg.Scope().Lookup(name).(*types.TypeName)
			if !ok || pkg.Path() == suite && name == "TB" {
				continue
			}
			if i, ok := o.Type().Underlying().(*types.Interface); ok && i.NumMethods() > most {
				out = append(out, fmt.Sprintf("%s.%s has %d methods", pkg.Path(), name, i.NumMethods()))
			}
		}
	}
	return out
}

func TestAWideInterfaceIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module wide.example\n\ngo 1.24\n", "main.go": `package main

type narrow interface{ A(); B() }
type wide interface{ narrow; C() }

func main() { _, _ = wide(nil), narrow(nil) }
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := typed(t, reached(t, dir, "."), func(path string) bool { return within(path, "wide.example") })
	if got := p.wide(2); len(got) != 1 || !strings.Contains(got[0], "wide has 3") {
		t.Errorf("%q", got)
	}
}
