package catalog

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Problem is one finding of ValidatePath.
type Problem struct {
	File         string
	Line, Column int // 0 = the whole file
	Msg          string
	Notice       bool // worth knowing, but no mistake
}

// ValidatePath checks one file or one folder over the built-in catalog. A file in a catalog's profiles/,
// kits/, extensions/ and so on is checked with that catalog, so that it may extend its neighbors; only its
// own problems are returned, sorted. The error, KindInvalid, is for a path that cannot be read, and for a
// folder with nothing to check.
func ValidatePath(path string, handlers []extensions.Extension, now time.Time) ([]Problem, error) {
	base, err := builtinLayer()
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "%s cannot be read: %w", path, cause(err)).
			WithRemedy("give a YAML file or a catalog folder")
	}
	l, only, err := target(path, info)
	if err != nil {
		return nil, err
	}
	if info.IsDir() && nothingIn(path, l) {
		return nil, extensions.Errorf(extensions.KindInvalid, "%s has nothing to check", path).
			WithRemedy("a catalog keeps YAML files in %s/: give one of them, or the folder that contains these", strings.Join(folders, "/, "))
	}
	ld := newLoader(handlers, now)
	ld.load([]layer{base, l})
	ld.checkReferences()
	ld.checkInputs()
	return ld.problems(only), nil
}

// nothingIn reports whether the folder at path, a catalog or one of its folders, has no file that a
// catalog reads.
func nothingIn(path string, l layer) bool {
	kind := filepath.Base(filepath.Clean(path))
	return len(l.errs)+len(l.policyErrs) == 0 && !slices.ContainsFunc(l.files, func(f file) bool {
		return f.kind == kind || !slices.Contains(folders, kind)
	})
}

// target reads what path stands for: a catalog, one of its folders, or a file. only restricts the report
// to one file.
func target(path string, info fs.FileInfo) (l layer, only string, err error) {
	clean := filepath.Clean(path)
	if !slices.Contains(folders, filepath.Base(clean)) && !slices.Contains(folders, filepath.Base(filepath.Dir(clean))) {
		if clean, err = filepath.Abs(path); err != nil { // the folder's name may lie above the working folder
			return l, "", err
		}
	}
	parent := filepath.Dir(clean)
	switch {
	case info.IsDir() && slices.Contains(folders, filepath.Base(clean)):
		l, err = folderLayer(parent)
		return l, "", err
	case info.IsDir():
		l, err = folderLayer(path)
		return l, "", err
	case slices.Contains(folders, filepath.Base(parent)) && isYAML(filepath.Base(clean)):
		l, err = folderLayer(filepath.Dir(parent))
		return l, clean, err
	}
	l, err = fileLayer(path)
	return l, path, err
}

func fileLayer(path string) (layer, error) {
	l := layer{name: filepath.Dir(path)}
	root, err := os.OpenRoot(l.name)
	if err != nil {
		return l, unreadable(l.name, err)
	}
	defer func() { _ = root.Close() }() // only read from
	data, err := readFile(root.FS(), filepath.Base(path))
	if err != nil {
		l.errs = strictyaml.Errors{{File: path, Msg: err.Error()}}
		return l, nil
	}
	kind, err := kindOf(path, data)
	if err != nil {
		l.errs = strictyaml.Collect(path, err)
		return l, nil
	}
	l.files = []file{{kind: kind, rel: kind + "/" + filepath.Base(path), name: path, data: data}}
	return l, nil
}

// kindOf determines by its id what a lone file is.
func kindOf(path string, data []byte) (string, error) {
	id, err := strictyaml.TopLevelText(path, data, "id")
	if err != nil {
		return "", err
	}
	for kind, prefix := range map[string]string{profilesFolder: profile.ProfilePrefix, kitsFolder: profile.KitPrefix,
		extensionsFolder: profile.ExtensionPrefix, pricesFolder: "prices.", policiesFolder: policyPrefix} {
		if strings.HasPrefix(id, prefix) {
			return kind, nil
		}
	}
	return "", errors.New(`unknown kind of file: want an ID that starts with "profile.", "kit.", "ext.", "prices." or "policy."`)
}

// checkReferences reports what a profile names and this catalog lacks. It is no mistake of the file:
// routing refuses a missing extension.
func (ld *loader) checkReferences() {
	for _, p := range ld.profiles.All() {
		if p.Extension != nil {
			ld.reference(p, *p.Extension, "extension")
		}
		ld.checkReach(p)
		if p.Route == nil {
			continue
		}
		for i, ext := range p.Route.Fallback {
			ld.reference(p, ext, "route", "fallback", strconv.Itoa(i))
		}
	}
}

func (ld *loader) reference(p *profile.Profile, ext string, path ...string) {
	if _, ok := ld.bindings[ext]; !ok && !ld.broken[ext] {
		ld.notices = append(ld.notices, ld.unbound(p.Errorf(path, ""), ext, "routing will refuse it"))
	}
}

func (ld *loader) problems(only string) []Problem {
	var out []Problem
	tell := func(list strictyaml.Errors, notice bool) {
		for _, e := range list {
			if only != "" && e.File != only || notice && strings.HasPrefix(e.File, builtinName+"/") {
				continue
			}
			msg := (&strictyaml.Error{Msg: e.Msg, Suggestion: e.Suggestion}).Error()
			out = append(out, Problem{File: e.File, Line: e.Line, Column: e.Column, Msg: msg, Notice: notice})
		}
	}
	tell(ld.errs, false)
	tell(ld.policyErrs, false)
	tell(ld.notices, true)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Msg, b.Msg))
	})
	return slices.Compact(out)
}
