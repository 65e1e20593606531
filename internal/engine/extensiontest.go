package engine

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/conformance"
)

// ExtensionTest holds a program to the contract that its author declared.
type ExtensionTest struct {
	// Program is the executable. Naming it here allows it to be run.
	Program string
	// Manifest is the YAML or JSON file with what it declares; "" = Program with .yaml in place of its own ending.
	Manifest string
	// Settings are the binding's, in YAML or JSON; "" = none.
	Settings string
	// Only are the checks to run, each by its whole name or by its group; nil = all that apply.
	Only []string
	// AtOnce is how many checks run at a time, at least 1.
	AtOnce int
}

// CheckResult is what one check of the conformance suite found.
type CheckResult = conformance.Result

// The outcomes of a check.
const (
	CheckPassed  = conformance.Passed
	CheckFailed  = conformance.Failed
	CheckSkipped = conformance.Skipped
)

// programHandler is the handler of extensions that are programs, and how its bindings name one.
const (
	programHandler  = "command"
	programField    = "command"
	manifestField   = "manifest"
	settingsField   = "settings"
	manifestEnding  = ".yaml"
	programShortTTL = 5 * time.Second // each verb starts a process
)

// Run runs the conformance suite against the program and tells each result as it comes. Every check gets an account's
// folder of its own. Errors are KindInvalid: a file that cannot be read, a manifest that says what cannot be declared.
func (t ExtensionTest) Run(ctx context.Context, exts []extensions.Extension, each func(CheckResult)) ([]CheckResult, error) {
	at := slices.IndexFunc(exts, func(x extensions.Extension) bool { return x.Describe().Handler == programHandler })
	if at < 0 {
		return nil, extensions.Errorf(extensions.KindUnsupported, "this build runs no programs as extensions")
	}
	values, err := t.values()
	if err != nil {
		return nil, err
	}
	program, _ := values[programField].(string)
	if _, err := extensions.Declared(exts[at], values); err != nil {
		return nil, err
	}
	cfg := extensions.Config{Binding: "ext.tested", Account: "conformance/one", Values: values, AllowedCommands: []string{program}}
	b, err := exts[at].Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := b.Close(); err != nil {
		return nil, err
	}
	h := conformance.Harness{
		New: func(conformance.TB) extensions.Extension { return exts[at] },
		Config: func(t conformance.TB) extensions.Config {
			own := cfg
			own.StateDir = t.TempDir()
			return own
		},
		Residue:  func(t conformance.TB, cfg extensions.Config) []string { return filesBelow(t, cfg.StateDir) },
		ShortTTL: programShortTTL,
	}
	return conformance.Run(ctx, h, conformance.Choice{AtOnce: max(t.AtOnce, 1), Only: t.Only}, each)
}

// filesBelow lists what a program keeps of its sandboxes where it was told to keep it.
func filesBelow(t conformance.TB, dir string) (files []string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatalf("looking for what is left: %v", err)
	}
	return files
}

// values are the config of a binding of the program.
func (t ExtensionTest) values() (map[string]any, error) {
	program, err := filepath.Abs(t.Program)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "%q: %w", t.Program, err)
	}
	file := t.Manifest
	if file == "" {
		file = strings.TrimSuffix(program, filepath.Ext(program)) + manifestEnding
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the manifest cannot be read: %w", err).
			WithRemedy("write down there what the program can do, or name the file with --manifest; the guide Write an extension shows how")
	}
	values := map[string]any{programField: program}
	var manifest, settings any
	if _, err := strictyaml.DecodePositions(file, text, &manifest); err != nil {
		return nil, err
	}
	values[manifestField] = manifest
	if t.Settings != "" {
		if _, err := strictyaml.DecodePositions("settings", []byte(t.Settings), &settings); err != nil {
			return nil, err
		}
		values[settingsField] = settings
	}
	return values, nil
}
