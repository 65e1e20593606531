package command_test

import (
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/command"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/conformance"
)

const examples = "../../../examples/extensions"

// config is that of a binding of a program.
func config(program string, manifest map[string]any, stateDir string) extensions.Config {
	return extensions.Config{Binding: "ext.mine", Account: "acme/web", StateDir: stateDir, AllowedCommands: []string{program},
		Values: map[string]any{"command": program, "manifest": manifest}}
}

// harness is that of a program with a manifest.
func harness[T conformance.TB](program string, manifest map[string]any) conformance.HarnessFor[T] {
	return conformance.HarnessFor[T]{
		New:      func(T) extensions.Extension { return command.New() },
		Config:   func(t T) extensions.Config { return config(program, manifest, t.TempDir()) },
		ShortTTL: 5 * time.Second,
		Residue:  residue[T],
	}
}

func residue[T conformance.TB](t T, cfg extensions.Config) []string {
	left, err := filepath.Glob(filepath.Join(cfg.StateDir, "command", "ext.mine", "acme_web", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// excuses are of checks that no program can be brought to.
var excuses = map[string]string{
	"exec/user":                        "a program has one user",
	"errors/each-alternative-opens":    "no alternative credentials are declared",
	"list/has-every-page":              "a program answers at once",
	"list/a-broken-one-is-an-error":    "a program answers at once",
	"entrypoint/runs-the-image":        "there are no images",
	"egress/deny-denies":               "the examples deny no network",
	"egress/allows-only-what-is-named": "the examples deny no network",
}
