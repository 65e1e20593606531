package compose

import (
	"archive/tar"
	"context"
	"io"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

const (
	// ContextDockerfile is the Dockerfile's name in a context that WriteContext writes.
	ContextDockerfile = ".sandboxer.Dockerfile"
	// MaxContext limits, in bytes, what WriteContext writes of files with holes.
	MaxContext = tarstream.DefaultMaxBytes

	ignoreFile = ".dockerignore"
)

// Labelled returns a Dockerfile whose stages all begin with the label, so that each layer that a build leaves has it.
func Labelled(dockerfile, name, value string) (string, error) {
	all, _, err := parseDockerfile(dockerfile)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(dockerfile, "\n")
	for _, in := range all {
		if in.Verb == "FROM" {
			lines[in.Last-1] = strings.TrimRight(lines[in.Last-1], "\r\n") + "\nLABEL " + name + "=" + value + "\n"
		}
	}
	return strings.Join(lines, ""), nil
}

// Dockerfile returns the text that a build is made from.
func (r Rendered) Dockerfile(b Build) (string, error) {
	if b.Text != "" {
		return b.Text, nil
	}
	text, err := r.source(b.Bundled).ReadFile(b.Dockerfile)
	if err != nil {
		return "", unreadableDockerfile(b.Dockerfile, err)
	}
	return string(text), nil
}

// WriteContext writes the folder of a build as a tar stream: what its ignore files leave, with dockerfile under the
// name ContextDockerfile, which no instruction sees. Symbolic links stay as they are; a builder resolves them inside
// the context.
func (r Rendered) WriteContext(ctx context.Context, b Build, dockerfile string, w io.Writer) error {
	src := r.source(b.Bundled)
	root, _, err := src.resolve(b.Context)
	if err != nil {
		return err
	}
	ignored, err := src.ignore(root, b.Dockerfile)
	if err != nil {
		return err
	}
	out := tarstream.NewDenseRelay(w, MaxContext)
	err = src.scan(ctx, func(h *tar.Header, name string, from *tarstream.Reader) error {
		rel, inside := name, true
		if root != "." {
			rel, inside = strings.CutPrefix(name, root+"/")
		}
		if !inside || rel == ContextDockerfile || rel == ignoreFile {
			return nil
		}
		if skip, err := ignored(rel); err != nil || skip {
			return err
		}
		copied := tar.Header{Typeflag: h.Typeflag, Name: rel, Mode: h.Mode & 0o777, Linkname: h.Linkname}
		if h.Typeflag == tar.TypeDir {
			copied.Name += "/"
		}
		return out.Put(copied, from)
	})
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	ignore := ignoreFile
	if e := src.Lookup(path.Join(root, ignoreFile)); e != nil && e.Type == TypeFile {
		text, err := src.ReadFile(path.Join(root, ignoreFile))
		if err != nil {
			return err
		}
		ignore = string(text)
	}
	tw := tar.NewWriter(w)
	for _, f := range [][2]string{{ignoreFile, ignore + "\n" + ContextDockerfile + "\n"}, {ContextDockerfile, dockerfile}} {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f[0], Size: int64(len(f[1])), Mode: 0o644}); err != nil {
			return err
		}
		if _, err := io.WriteString(tw, f[1]); err != nil {
			return err
		}
	}
	return tw.Close()
}

// PrepareDigest is what extensions.ImagePreparer returns of the images: of those that are built, what determines
// them, and of the others their names.
func (r Rendered) PrepareDigest() string {
	all := make([]any, 0, len(r.Builds)+len(r.Pulls))
	for _, b := range r.Builds {
		all = append(all, b.Digest)
	}
	for _, p := range r.Pulls {
		all = append(all, p)
	}
	return "sha256:" + ociimage.Key(all)
}
