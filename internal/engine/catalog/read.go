package catalog

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

//go:embed builtin
var builtin embed.FS

// Folders of a catalog.
const (
	profilesFolder   = "profiles"
	kitsFolder       = "kits"
	extensionsFolder = "extensions"
	pricesFolder     = "prices"
	policiesFolder   = "policies"
	tunnelsFolder    = "tunnels"
	identitiesFolder = "identities"
)

var folders = []string{profilesFolder, kitsFolder, extensionsFolder, pricesFolder, policiesFolder, tunnelsFolder, identitiesFolder}

const builtinName = "built-in"

const maxFiles = 2000 // per catalog folder

// file is one YAML file of a layer.
type file struct {
	kind string // one of folders
	rel  string // "profiles/profile.x.yaml"
	name string // for messages: the folder as the user gave it, and rel
	data []byte
	once *parsed // of a built-in file
}

// parsed is what a built-in file holds, for every catalog of this process. Nobody changes it.
type parsed struct {
	sync.Once
	value any
	err   error
}

// parse reads the file with a function that always is the same for a file, and that depends on its name and data
// alone.
func parse[T any](f file, read func(name string, data []byte) (T, error)) (T, error) {
	if f.once == nil {
		return read(f.name, f.data)
	}
	f.once.Do(func() { f.once.value, f.once.err = read(f.name, f.data) })
	return f.once.value.(T), f.once.err
}

// layer is one catalog folder, or the built-in catalog.
type layer struct {
	name    string
	builtin bool
	files   []file
	errs    strictyaml.Errors
	// policyErrs are mistakes in policies/, which stop new sandboxes but not existing ones.
	policyErrs strictyaml.Errors
}

// decoded is a file as it is written, with the positions of its keys.
type decoded[T any] struct {
	in  T
	pos *strictyaml.Positions
}

func decode[T any](name string, data []byte) (d decoded[T], err error) {
	d.pos, err = strictyaml.DecodePositions(name, data, &d.in)
	return d, err
}

var builtinLayer = sync.OnceValues(func() (layer, error) {
	sub, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return layer{}, err
	}
	l := layer{name: builtinName, builtin: true}
	l.read(sub)
	for i := range l.files {
		l.files[i].once = &parsed{}
	}
	return l, nil
})

// folderLayer reads a user's folder. The error concerns the folder as a whole; mistakes in single files
// are in the layer.
func folderLayer(dir string) (layer, error) {
	l := layer{name: dir}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return l, unreadable(dir, err)
	}
	defer func() { _ = root.Close() }() // only read from
	l.read(root.FS())
	return l, nil
}

func unreadable(dir string, err error) error {
	e := extensions.Errorf(extensions.KindInvalid, "the catalog folder %s cannot be read: %w", dir, cause(err))
	switch info, statErr := os.Stat(dir); {
	case dir == "":
		e = extensions.Errorf(extensions.KindInvalid, "the name of a catalog folder is empty")
	case errors.Is(err, fs.ErrNotExist):
		return extensions.Errorf(extensions.KindInvalid, "the catalog folder %s does not exist", dir).At("catalog").
			WithRemedy("create it with the folders %s, or correct the catalog argument", strings.Join(folders, "/, ")+"/")
	case statErr == nil && !info.IsDir():
		e = extensions.Errorf(extensions.KindInvalid, "the catalog folder %s is not a folder", dir)
	}
	return e.At("catalog").WithRemedy("correct the catalog argument")
}

// cause drops the path that every fs error repeats.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (l *layer) read(fsys fs.FS) {
	for _, kind := range folders {
		entries, err := fs.ReadDir(fsys, kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			l.bad(kind, "cannot be read: %v", cause(err))
			continue
		}
		for _, e := range entries {
			if !isYAML(e.Name()) || e.IsDir() {
				continue
			}
			if len(l.files) == maxFiles {
				l.bad(kind, "more than %d files", maxFiles)
				return
			}
			l.add(fsys, kind, path.Join(kind, e.Name()))
		}
	}
	slices.SortFunc(l.files, func(a, b file) int { return strings.Compare(a.rel, b.rel) })
}

func (l *layer) add(fsys fs.FS, kind, rel string) {
	data, err := readFile(fsys, rel)
	if err != nil {
		l.bad(rel, "%v", err)
		return
	}
	l.files = append(l.files, file{kind: kind, rel: rel, name: l.shown(rel), data: data})
}

func (l *layer) shown(rel string) string {
	if l.builtin {
		return path.Join(l.name, rel)
	}
	return filepath.Join(l.name, filepath.FromSlash(rel))
}

func (l *layer) bad(rel, format string, args ...any) {
	e := &strictyaml.Error{File: l.shown(rel), Msg: fmt.Sprintf(format, args...)}
	if kind, _, _ := strings.Cut(rel, "/"); kind == policiesFolder {
		l.policyErrs = append(l.policyErrs, e)
		return
	}
	l.errs = append(l.errs, e)
}

// readFile reads a regular file of at most strictyaml.MaxBytes. It checks the type before opening, since
// opening a pipe would wait for a writer.
func readFile(fsys fs.FS, rel string) ([]byte, error) {
	info, err := fs.Stat(fsys, rel)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", cause(err))
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file")
	case info.Size() > strictyaml.MaxBytes:
		return nil, fmt.Errorf("the file has %d bytes; at most %d are read", info.Size(), strictyaml.MaxBytes)
	}
	f, err := fsys.Open(rel)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", cause(err))
	}
	defer func() { _ = f.Close() }() // only read from
	data, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", cause(err))
	}
	return data, nil
}

func isYAML(name string) bool {
	ext := path.Ext(name)
	return !strings.HasPrefix(name, ".") && (ext == ".yaml" || ext == ".yml")
}
