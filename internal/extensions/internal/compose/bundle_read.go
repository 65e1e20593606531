package compose

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// errTooLarge is the error for a file larger than MaxFile.
var errTooLarge = fmt.Errorf("it is larger than %d bytes", MaxFile)

// ReadFile returns the content of the file the name leads to, at most MaxFile bytes. The name is relative to
// the bundle's root; ReadFile follows symbolic links only inside the bundle.
func (b *Bundle) ReadFile(name string) ([]byte, error) {
	return b.readFile(context.Background(), name)
}

func (b *Bundle) readFile(ctx context.Context, name string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	real, e, err := b.resolve(name)
	switch {
	case err != nil:
		return nil, err
	case e.Type != TypeFile:
		return nil, errors.New("it is a folder")
	case e.Size > MaxFile:
		return nil, errTooLarge
	case e.kept:
		return e.data, nil
	}
	var data []byte
	err = b.scan(ctx, func(h *tar.Header, at string, r *tarstream.Reader) error {
		if at != real || data != nil || h.Size > MaxFile {
			return nil
		}
		var text bytes.Buffer
		_, err := r.WriteTo(&text)
		data = text.Bytes()
		return err
	})
	if err != nil {
		return nil, err
	}
	if tarstream.ContentDigest(data) != e.Digest {
		return nil, extensions.Errorf(extensions.KindConflict, "%s changed in the bundle while it was read", extensions.Clean(real, 200))
	}
	if b.kept+e.Size <= maxKept {
		e.data, e.kept = data, true
		b.kept += e.Size
	}
	return data, nil
}

// TreeDigest returns the lower-case hex SHA-256 over everything a build of the folder sees: names, types,
// permission bits, link targets and contents, except what every builder ignores. dockerfile counts even if it
// is ignored or lies elsewhere in the bundle; "" counts none. Both are relative to the bundle's root.
func (b *Bundle) TreeDigest(dir, dockerfile string) (string, error) {
	root, e, err := b.resolve(dir)
	if err != nil || e.Type != TypeDir {
		return "", extensions.Errorf(extensions.KindInvalid, "the build context %s is not a folder of the bundle", extensions.Clean(dir, 200))
	}
	h := sha256.New()
	if dockerfile != "" {
		_, file, err := b.resolve(dockerfile)
		if err != nil || file.Type != TypeFile {
			return "", extensions.Errorf(extensions.KindInvalid, "the Dockerfile %s is not a file of the bundle", extensions.Clean(dockerfile, 200))
		}
		fmt.Fprintf(h, "dockerfile %s\n", file.Digest)
	}
	ignored, err := b.ignore(root, dockerfile)
	if err != nil {
		return "", err
	}
	for _, name := range b.below(root) {
		e := b.entries[name]
		b.needed.Store(name, nil)
		rel := strings.TrimPrefix(name, root+"/")
		if root == "." {
			rel = name
		}
		if skip, err := ignored(rel); err != nil || skip {
			if err != nil {
				return "", err
			}
			continue
		}
		// Quoting makes every line unambiguous; a name may hold a newline.
		fmt.Fprintf(h, "%c %04o %q %q %s\n", e.Type, e.Mode, rel, e.Link, e.Digest)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ignore reads the ignore files of a build of the folder: the folder's and the Dockerfile's own. BuildKit
// honors only the latter, the classic builder only the former, so a name is ignored only if no builder would
// see it.
func (b *Bundle) ignore(root, dockerfile string) (func(rel string) (bool, error), error) {
	folders, err := b.matcher(path.Join(root, ".dockerignore"))
	if err != nil || folders == nil {
		return func(string) (bool, error) { return false, nil }, err
	}
	own, err := b.matcher(dockerfile + ".dockerignore")
	if err != nil || own == nil || dockerfile == "" {
		return folders.MatchesOrParentMatches, err
	}
	return func(rel string) (bool, error) {
		skip, err := folders.MatchesOrParentMatches(rel)
		if err != nil || !skip {
			return false, err
		}
		return own.MatchesOrParentMatches(rel)
	}, nil
}

// matcher returns nil if there is no such file.
func (b *Bundle) matcher(name string) (*patternmatcher.PatternMatcher, error) {
	if e := b.Lookup(name); e == nil || e.Type != TypeFile {
		return nil, nil
	}
	data, err := b.ReadFile(name)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "%s cannot be read: %w", extensions.Clean(name, 200), err)
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(data))
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "%s cannot be read: %w", extensions.Clean(name, 200), err)
	}
	pm, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "%s cannot be read: %w", extensions.Clean(name, 200), err)
	}
	return pm, nil
}

// below lists every name under the folder, sorted.
func (b *Bundle) below(root string) []string {
	var names []string
	for name := range b.entries {
		if name != root && name != "." && (root == "." || strings.HasPrefix(name, root+"/")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
