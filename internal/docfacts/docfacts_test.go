// Package docfacts holds what the hand-written pages say against the project:
// links, folders, make targets. What a page says of the code's own tables
// (lifecycle, routing, capabilities, profiles) is tested beside those tables.
package docfacts

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// pages are the Markdown files of the project, by path below its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && d.Name() != ".github"
		if d.IsDir() && (hidden || d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "dist") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		out[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"README.md", "CONTRIBUTING.md", "docs/design/architecture.md"} {
		if out[want] == "" {
			t.Fatalf("%s is missing or empty", want)
		}
	}
	return out
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksWithinTheProjectLeadSomewhere(t *testing.T) {
	t.Parallel()
	for page, text := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			// The registry shows pages of docs/ without their folder and ending.
			if strings.HasPrefix(target, "/") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), target)); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, m[1])
			}
		}
	}
}

var (
	makeUse    = regexp.MustCompile("(?m)(?:^    |`)make ([a-z]+)")
	makeTarget = regexp.MustCompile(`(?m)^([a-z-]+):`)
)

func TestMakeTargetsInThePagesExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "GNUmakefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range makeTarget.FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(m[1]))
	}
	used := 0
	for page, text := range pages(t) {
		for _, m := range makeUse.FindAllStringSubmatch(text, -1) {
			used++
			if !slices.Contains(targets, m[1]) {
				t.Errorf("%s: there is no `make %s`", page, m[1])
			}
		}
	}
	if used == 0 {
		t.Error("no page names a make target: the pattern of this test is wrong")
	}
}

// The tree of architecture.md names folders that exist, and every package
// folder of the engine and of the contract is in it.
func TestArchitectureShowsTheTreeAsItIs(t *testing.T) {
	t.Parallel()
	text := pages(t)["docs/design/architecture.md"]
	_, rest, ok := strings.Cut(text, "## Tree")
	tree, _, ok2 := strings.Cut(rest, "##")
	if !ok || !ok2 {
		t.Fatal("architecture.md has no section Tree")
	}
	folder := regexp.MustCompile(`^ {4}( *)((?:[a-z0-9]+/)+(?: (?:[a-z0-9]+/)+)*)`)
	shown := map[string]bool{}
	parent := ""
	for line := range strings.Lines(tree) {
		m := folder.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, name := range strings.Fields(m[2]) {
			path := name
			if m[1] == "" {
				parent = name
			} else {
				path = parent + name
			}
			shown[strings.TrimSuffix(path, "/")] = true
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("the tree shows %s, which does not exist", path)
			}
		}
	}
	for _, parent := range []string{"internal", "internal/engine", "internal/extensions"} {
		entries, err := os.ReadDir(filepath.Join(root, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if path := parent + "/" + e.Name(); e.IsDir() && e.Name() != "testdata" && !shown[path] {
				t.Errorf("the tree does not show %s", path)
			}
		}
	}
}

// A newcomer is given two commands, and they are the ones CI runs.
func TestReadmeGivesTheTwoCommands(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, command := range []string{"make demo", "make test"} {
		if !strings.Contains(all["README.md"], "\n    "+command) {
			t.Errorf("README.md does not give the command %s", command)
		}
		ci, err := os.ReadFile(filepath.Join(root, ".ci/run"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(ci, []byte(" "+command+"\n")) {
			t.Errorf(".ci/run does not run %s", command)
		}
	}
}

// Prose that people write is wrapped at 110 columns. Tables, code and links to the web cannot be.
func TestProseIsWrapped(t *testing.T) {
	t.Parallel()
	const columns = 110
	written := regexp.MustCompile(`^([A-Z]+|docs/design/.*|examples/.*|templates/.*|internal/.*)\.md$`)
	item := regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	for name, text := range pages(t) {
		if !written.MatchString(name) || name == "docs/design/capabilities.md" { // which the code writes
			continue
		}
		fenced, code, before := false, false, ""
		for i, line := range strings.Split(text, "\n") {
			fenced = fenced != strings.HasPrefix(strings.TrimSpace(line), "```")
			code = strings.HasPrefix(line, "    ") && !item.MatchString(line) && (code || before == "")
			if before = line; !fenced && !code && !strings.HasPrefix(line, "|") && !strings.Contains(line, "](http") &&
				len([]rune(line)) > columns {
				t.Errorf("%s:%d has %d columns, at most %d", name, i+1, len([]rune(line)), columns)
			}
		}
	}
}
