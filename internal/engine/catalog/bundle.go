package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// home is the catalog that holds a profile.
type home struct {
	dir     string // as the user gave it; the name of the built-in catalog
	builtin bool
}

// Bundle is the open folder of a profile.
type Bundle struct {
	Root   *os.Root
	Origin string // the folder, for people
	copied string // a temporary copy to remove
}

// Close closes the folder.
func (b *Bundle) Close() error {
	err := b.Root.Close()
	if b.copied != "" {
		err = errors.Join(err, os.RemoveAll(b.copied))
	}
	return err
}

// OpenBundle opens the folder named bundle beside the profile ref. It follows links only inside that
// folder. A built-in bundle is copied to temp. A missing folder is KindInvalid.
func (c *Catalog) OpenBundle(ref, bundle, temp string) (*Bundle, error) {
	owner, err := c.Profiles.BundleOf(ref, bundle)
	if err != nil {
		return nil, err
	}
	at, ok := c.homes[owner]
	if !ok {
		return nil, extensions.Errorf(extensions.KindInternal, "the folder of %s is unknown", owner)
	}
	if at.builtin {
		return builtinBundle(builtin, at, bundle, temp)
	}
	origin := filepath.Join(at.dir, profilesFolder, filepath.FromSlash(bundle))
	outer, err := os.OpenRoot(at.dir)
	if err != nil {
		return nil, unreadable(at.dir, err)
	}
	defer func() { _ = outer.Close() }() // only read from
	root, err := outer.OpenRoot(path.Join(profilesFolder, bundle))
	if err != nil {
		return nil, noBundle(owner, origin, err)
	}
	return &Bundle{Root: root, Origin: origin}, nil
}

// builtinBundle copies a bundle of the program to a folder in temp, because archives are packed from
// folders.
func builtinBundle(files fs.FS, at home, bundle, temp string) (_ *Bundle, err error) {
	rel := path.Join("builtin", profilesFolder, bundle)
	origin := path.Join(at.dir, profilesFolder, bundle)
	sub, err := fs.Sub(files, rel)
	if err == nil {
		_, err = fs.ReadDir(sub, ".")
	}
	if err != nil {
		return nil, noBundle(at.dir, origin, err)
	}
	dir, err := os.MkdirTemp(temp, "sandboxer-bundle-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	if err := os.CopyFS(dir, sub); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Bundle{Root: root, Origin: origin, copied: dir}, nil
}

func noBundle(owner, origin string, err error) error {
	return extensions.Errorf(extensions.KindInvalid, "the bundle of %s, the folder %s, cannot be opened: %w", owner, origin, cause(err)).
		At("profile").WithRemedy("create the folder beside the profile, or correct bundle")
}
