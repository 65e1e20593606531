package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ignoreFiles are tried in order; the first that exists is used.
var ignoreFiles = []string{".sandboxerignore", ".dockerignore"}

const maxIgnoreBytes = 1 << 20

// ignore decides what stays out of a folder's workspace.
type ignore struct {
	pm *patternmatcher.PatternMatcher
}

func loadIgnore(root *os.Root) (ignore, error) {
	for _, name := range ignoreFiles {
		info, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreBytes {
			return ignore{}, extensions.Errorf(extensions.KindInvalid, "%s is not a readable regular file of at most 1 MiB", name).
				WithRemedy("Replace it with a plain text file, or remove it.")
		}
		return readIgnore(root, name)
	}
	return ignore{}, nil
}

func readIgnore(root *os.Root, name string) (ignore, error) {
	unusable := func(err error) (ignore, error) {
		return ignore{}, extensions.Errorf(extensions.KindInvalid, "%s cannot be used: %w", name, bare(err)).
			WithRemedy("Correct the pattern; the syntax is that of .dockerignore.")
	}
	f, err := root.Open(name)
	if err != nil {
		return unusable(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIgnoreBytes))
	if err != nil {
		return unusable(err)
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(b))
	if err != nil {
		return unusable(err)
	}
	pm, err := patternmatcher.New(patterns)
	if err != nil {
		return unusable(err)
	}
	if _, err := pm.MatchesOrParentMatches("probe"); err != nil { // patterns are compiled at first use
		return unusable(err)
	}
	return ignore{pm}, nil
}

// skip reports whether path is left out: by its own name or a parent's, unless a later "!" pattern
// restores it. Our own temporary files always are.
func (i ignore) skip(path string, _ bool) bool {
	if isSyncTemp(path) {
		return true
	}
	if i.pm == nil {
		return false
	}
	out, err := i.pm.MatchesOrParentMatches(filepath.FromSlash(path))
	return err == nil && out
}

// descend reports whether a "!" pattern may restore something below path. A pattern with a wildcard may
// name anything.
func (i ignore) descend(path string) bool {
	if i.pm == nil || !i.pm.Exclusions() {
		return false
	}
	for _, p := range i.pm.Patterns() {
		text := filepath.ToSlash(p.String())
		if p.Exclusion() && (strings.ContainsAny(text, "*?[") || strings.HasPrefix(text+"/", path+"/")) {
			return true
		}
	}
	return false
}

// bare drops the path that a file error repeats.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
