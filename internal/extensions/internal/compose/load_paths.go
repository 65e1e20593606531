package compose

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var errForm = errors.New("it is not a relative path of plain text")

// remote reports whether Compose would fetch what the path names.
func remote(p string) bool {
	lower := strings.ToLower(strings.TrimSpace(p))
	for _, prefix := range []string{"git@", "github.com/", "oci:", "docker-image:", "docker.io/", "gitlab.com/", "bitbucket.org/"} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return strings.Contains(lower, "://") && !strings.HasPrefix(lower, "file:")
}

// plainPath refuses what another reader or system may take for anything but a relative path.
func plainPath(p string) error {
	switch {
	case p == "", strings.TrimSpace(p) != p, path.IsAbs(p), strings.HasPrefix(p, "~"), strings.Contains(p, `\`),
		len(p) > 1 && p[1] == ':', strings.Contains(p, "://"), strings.HasPrefix(strings.ToLower(p), "file:"), len(p) > 4096,
		strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }):
		return errForm
	}
	return nil
}

// within joins a path in a file to the file's folder and walks it in the bundle. The name has no symbolic
// links; the entry is nil if nothing is there yet.
func (l *loading) within(dir, p string) (string, *Entry, error) {
	if err := plainPath(p); err != nil {
		return "", nil, err
	}
	joined := path.Join(dir, p)
	if joined == ".." || strings.HasPrefix(joined, "../") {
		return "", nil, errLeaves
	}
	at, e, err := l.bundle.resolve(joined)
	if errors.Is(err, errMissing) && at != "" {
		return at, nil, nil
	}
	return at, e, err
}

// file finds a file that must be read; ok is false if it was refused.
func (l *loading) file(dir, p, rule, where string) (name string, ok bool) {
	at, e, err := l.within(dir, p)
	switch {
	case errors.Is(err, errMissing), err == nil && e == nil:
		l.found.refuse("file-missing", where, quoted(p)+" is not in the bundle")
	case err != nil:
		l.found.refuse(rule, where, fmt.Sprintf("%s: %v", quoted(p), err))
	case e.Type != TypeFile:
		l.found.refuse("file-missing", where, quoted(p)+" is no file")
	case e.Size > MaxFile:
		l.found.refuse("too-large", where, fmt.Sprintf("%s: %v", quoted(p), errTooLarge))
	default:
		return at, true
	}
	return "", false
}

func quoted(s string) string { return fmt.Sprintf("%q", extensions.Clean(s, 80)) }

// anchor makes a path absolute below Root, as the library would with a working directory. It leaves anything
// but a plain relative path to the policy.
func anchor(dir, p string) string {
	if plainPath(p) != nil || remote(p) {
		return p
	}
	return path.Join(Root, dir, p)
}

// anchorAll makes every path in a model's services and files absolute. Absolute paths stay: those of extended
// and included files.
func anchorAll(dict map[string]any, dir string) {
	for _, s := range mapsIn(dict["services"]) {
		anchorContainer(s, dir)
		for _, h := range mapsIn(s["pre_start"]) {
			anchorContainer(h, dir)
		}
	}
	for _, s := range mapsIn(dict["jobs"]) {
		anchorContainer(s, dir)
	}
	for _, kind := range []string{"configs", "secrets"} {
		for _, c := range mapsIn(dict[kind]) {
			anchorKey(c, "file", dir)
		}
	}
}

func anchorContainer(s map[string]any, dir string) {
	// Only `docker compose watch` reads develop, and it never runs here.
	delete(s, "develop")
	delete(s, "x-develop")
	for _, f := range mapsIn(s["env_file"]) {
		anchorKey(f, "path", dir)
	}
	if list, ok := s["label_file"].([]any); ok {
		for i, f := range list {
			if p, ok := f.(string); ok {
				list[i] = anchor(dir, p)
			}
		}
	}
	for _, v := range mapsIn(s["volumes"]) {
		if v["type"] == "bind" {
			anchorKey(v, "source", dir)
		}
	}
	build, ok := s["build"].(map[string]any)
	if !ok {
		return
	}
	anchorKey(build, "context", dir)
	if more, ok := build["additional_contexts"].(map[string]any); ok {
		for k := range more {
			anchorKey(more, k, dir)
		}
	}
}

func anchorKey(m map[string]any, key, dir string) {
	if p, ok := m[key].(string); ok && !strings.HasPrefix(p, "service:") {
		m[key] = anchor(dir, p)
	}
}

// mapsIn lists the mappings among the values of a mapping or sequence.
func mapsIn(v any) []map[string]any {
	var out []map[string]any
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				out = append(out, m)
			}
		}
	case []any:
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// inBundle turns a path of the loaded model back into a name in the bundle, without symbolic links.
func (l *loading) inBundle(p string) (string, *Entry, error) {
	clean := path.Clean(p)
	if clean == Root {
		return ".", l.bundle.entries["."], nil
	}
	rel, ok := strings.CutPrefix(clean, Root+"/")
	if !ok {
		if path.IsAbs(p) {
			return "", nil, errLeaves
		}
		return "", nil, errForm
	}
	return l.within(".", rel)
}
