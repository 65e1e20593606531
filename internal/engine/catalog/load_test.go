package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// folder writes files of a catalog below a fresh folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for rel, text := range files {
		name := filepath.Join(dir, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const mine = "id: profile.mine\nversion: \"1.0.0\"\nextends: profile.quickstart\n"

const book = `
id: prices.mine
extension: ext.mine
version: "1"
as_of: "2026-01-01"
source: a test
currency: EUR
confidence: exact
billing: wall-clock
components:
  - { component: sandbox, unit: sandbox-hour, price: "0.10" }
`

func TestFoldersExtendAndOverride(t *testing.T) {
	t.Parallel()
	first := folder(t, map[string]string{
		"profiles/mine.yaml": mine,
		"extensions/ext.mine.yml": "id: ext.mine\nhandler: saas-stub\nregion: eu\npriority: 5\nbilling: byok\nlatency: { create_to_ready: " +
			"8s, source: a test, as_of: \"2026-01-02\" }\ncapacity: { max_sandboxes: 3 }\nconfig: { region: eu, lag: 1d }\n",
		"extensions/ext.local.yaml": "id: ext.local\nhandler: local\ncost: { per_hour: \"0.10 EUR\" }\nshadow_price: { vcpu_hour: \"0.03 " +
			"EUR\", gib_hour: \"0.004 EUR\", source: a test, as_of: \"2026-01-02\" }\n",
		"prices/prices.mine.yaml":    book,
		"profiles/notes.txt":         "not: [yaml",
		"profiles/.hidden.yaml":      "not: [yaml",
		"profiles/stack/more.yaml":   "not: [yaml",
		"compose.yaml":               "not: [yaml",
		"profiles/uppercase.YAML":    "not: [yaml",
		"somewhere/else/anything.go": "package x",
	})
	second := folder(t, map[string]string{"profiles/a.yaml": mine + "ttl: { default: 2h }\n"})
	c, err := catalog.Load([]string{first, second}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Profiles.Lookup("profile.mine")
	if err != nil || p.TTL == nil || p.File() != filepath.Join(second, "profiles", "a.yaml") {
		t.Errorf("the later folder does not win: %+v, %v", p, err)
	}
	b, ok := c.Binding("ext.mine")
	if !ok || b.Handler != "saas-stub" || b.Title != "Vendor" || b.Region != "eu" || b.Priority != 5 || b.Billing != "byok" ||
		b.CreateToReady != 8*time.Second || *b.MaxSandboxes != 3 || b.Config["lag"] != "1d" ||
		c.Book("ext.mine") == nil || c.Book("ext.mine").Currency != "EUR" {
		t.Errorf("ext.mine is %+v", b)
	}
	if l, _ := c.Binding("ext.local"); l.PerHour != "0.10 EUR" || l.Shadow == nil || l.Shadow.Currency != "EUR" {
		t.Errorf("the built-in binding is not replaced: %+v", l)
	}
	want := []string{
		filepath.Join(first, "extensions/ext.local.yaml") + ":1:5: ext.local replaces the one of built-in/extensions/ext.local.yaml",
		filepath.Join(second, "profiles/a.yaml") + ":1:5: profile.mine@1.0.0 replaces the one of " + filepath.Join(first, "profiles/mine.yaml"),
	}
	slices.Sort(want)
	if !slices.Equal(c.Notices, want) {
		t.Errorf("notices %q, want %q", c.Notices, want)
	}
	if _, ok := c.Binding("ext.nothing"); ok {
		t.Error("an unknown binding is found")
	}
}

func TestBindingsNarrow(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"extensions/a.yaml": `
id: ext.a
title: Narrow
handler: saas-stub
capabilities:
  isolation_levels: [microvm]
  pricing_model: self-hosted
  regions: [eu]
  max_concurrent: 2
  max_vcpu: 4
  max_memory_mb: 100
  max_ttl: 2h
  max_session_duration: 1d
  egress: cidr
  gpu: false
  extend_ttl: none
  secrets_as: [env]
runtime_provides: { runtime_kinds: [npm], requirement_kinds: [git] }
`})
	c, err := catalog.Load([]string{dir}, handlers(), today)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := c.Binding("ext.a")
	k := b.Capabilities
	if !slices.Equal(k.IsolationLevels, []extensions.Isolation{"microvm"}) || k.PricingModel != "self-hosted" ||
		!slices.Equal(k.Regions, []string{"eu"}) ||
		*k.MaxConcurrent != 2 || *k.MaxVCPU != 4 || *k.MaxMemoryMB != 100 || k.MaxTTL != 2*time.Hour || k.MaxSessionDuration != 24*time.Hour ||
		k.Egress != extensions.EgressCIDR || k.GPU || k.ExtendTTL != extensions.ExtendNone ||
		!slices.Equal(k.SecretsAs, []extensions.SecretDelivery{extensions.SecretsEnv}) ||
		!slices.Equal(b.Provides.RuntimeKinds, []string{"npm"}) || !slices.Equal(b.Provides.RequirementKinds, []string{"git"}) {
		t.Errorf("got %+v, provides %+v", k, b.Provides)
	}
	if d := descriptors()[1].Capabilities; *d.MaxConcurrent != 10 || b.Descriptor.Capabilities.MaxTTL != d.MaxTTL {
		t.Error("narrowing reached the descriptor")
	}
	if l, _ := c.Binding("ext.local"); !slices.Equal(l.Provides.RuntimeKinds, []string{"native"}) {
		t.Errorf("the class default is lost: %+v", l.Provides)
	}
}

func TestDigestDependsOnNamesAndBytesOnly(t *testing.T) {
	t.Parallel()
	digest := func(dirs ...string) string {
		c, err := catalog.Load(dirs, handlers(), today)
		if err != nil {
			t.Fatal(err)
		}
		return c.Digest
	}
	a := folder(t, map[string]string{"profiles/mine.yaml": mine})
	same := folder(t, map[string]string{"profiles/mine.yaml": mine, "profiles/README.md": "x"})
	edited := folder(t, map[string]string{"profiles/mine.yaml": mine + "\n"})
	renamed := folder(t, map[string]string{"profiles/other.yaml": mine})
	if digest(a) != digest(same) || len(digest(a)) != 64 {
		t.Error("the folder's place or other files change the digest")
	}
	seen := map[string]string{}
	for name, d := range map[string]string{"none": digest(), "a": digest(a), "edited": digest(edited), "renamed": digest(renamed),
		"twice": digest(a, same), "order": digest(a, edited), "reverse": digest(edited, a)} {
		if other, dup := seen[d]; dup {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[d] = name
	}
}

func TestFoldersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"file": "x"})
	for name, want := range map[string]string{
		filepath.Join(dir, "missing"): "does not exist",
		filepath.Join(dir, "file"):    "is not a folder",
		"":                            "the name of a catalog folder is empty",
		dir + "\x00":                  "cannot be read",
	} {
		_, err := catalog.Load([]string{name}, handlers(), today)
		if err == nil || !strings.Contains(err.Error(), want) || !extensions.IsKind(err, extensions.KindInvalid) ||
			extensions.RemedyOf(err) == "" || extensions.FieldOf(err) != "catalog" {
			t.Errorf("%q: %v, remedy %q", name, err, extensions.RemedyOf(err))
		}
	}
}

func TestAnEmptyFolderIsToldNotRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := catalog.Load([]string{dir}, handlers(), today)
	if err != nil || len(c.Notices) != 1 || !strings.HasPrefix(c.Notices[0], dir+": no catalog files here") {
		t.Errorf("notices %q, %v", c.Notices, err)
	}
}

func TestHugeFilesAreRefusedUnread(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"profiles/mine.yaml": mine})
	if err := os.Truncate(filepath.Join(dir, "profiles/mine.yaml"), 1<<40); err != nil {
		t.Skipf("sparse files: %v", err)
	}
	_, err := catalog.Load([]string{dir}, handlers(), today)
	if err == nil || !strings.Contains(err.Error(), "mine.yaml: the file has 1099511627776 bytes; at most 1048576 are read") {
		t.Errorf("got %v", err)
	}
}

func TestEveryFileIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"profiles/a.yaml": "id: profile.a\nversion: 1\n", "extensions/b.yaml": "id: ext.b\nhandler: nowhere\n", "prices/c.yaml": "id: x\n",
		"profiles/d.yaml": "a: b: c\n",
	})
	_, err := catalog.Load([]string{dir}, handlers(), today)
	var list strictyaml.Errors
	if !errors.As(err, &list) {
		t.Fatalf("got %v", err)
	}
	files := map[string]bool{}
	for _, e := range list {
		files[filepath.Base(e.File)] = true
	}
	if len(files) != 4 {
		t.Errorf("reported: %v", err)
	}
}
