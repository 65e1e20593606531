package workspace

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

func openFolder(ctx context.Context, loc location, opts Options) (*Source, error) {
	if err := checkFolder(loc.folder); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(loc.folder)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the workspace folder %q cannot be entered: %w", loc.origin(), bare(err))
	}
	defer root.Close()
	origin, err := filepath.Abs(loc.folder)
	if err != nil {
		origin = loc.folder
	}
	return OpenRoot(ctx, root, origin, opts)
}

// OpenRoot builds the stream of an open folder, honoring its ignore file. origin names the folder in
// messages. The caller closes root, at once if it likes.
func OpenRoot(ctx context.Context, root *os.Root, origin string, opts Options) (*Source, error) {
	if err := os.MkdirAll(opts.SpoolDir, 0o700); err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the spool folder cannot be created: %w", err)
	}
	ig, err := loadIgnore(root)
	if err != nil {
		return nil, err
	}
	tar := opts.tar()
	tar.Skip, tar.Descend = ig.skip, ig.descend
	s, err := spool(opts.SpoolDir, func(w io.Writer) (tarstream.Manifest, error) {
		return tarstream.Pack(ctx, w, root, tar)
	})
	if err != nil {
		return nil, err
	}
	s.origin = extensions.Clean(origin, 1000)
	return s, nil
}
