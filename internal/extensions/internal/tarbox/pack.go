package tarbox

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/spool"
)

// Packed is a compressed tar stream of files, for a place that unpacks one at its root. It is packed as it is read, and Close
// ends that.
func Packed(files ...execwire.File) io.ReadCloser {
	packed, to := io.Pipe()
	go func() { _ = to.CloseWithError(pack(to, files)) }()
	return packed
}

func pack(w io.Writer, files []execwire.File) error {
	zip := gzip.NewWriter(w)
	to := tar.NewWriter(zip)
	for _, f := range files {
		if err := add(to, f); err != nil {
			return err
		}
	}
	return errors.Join(to.Close(), zip.Close())
}

// add puts a file into an archive, where its size comes first.
func add(to *tar.Writer, f execwire.File) error {
	var all spool.Spool
	defer func() { _ = all.Close() }()
	_, err := io.Copy(&all, f.Content)
	if err != nil {
		return err
	}
	r, err := all.Reader()
	if err == nil {
		err = to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.Path, "/"), Mode: 0o600, Size: all.Size})
	}
	if err == nil {
		_, err = io.Copy(to, r)
	}
	return err
}
