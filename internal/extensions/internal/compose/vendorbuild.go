package compose

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// anySandbox stands for the sandbox where images are read: they are the same for all, and a plan has none yet.
const anySandbox extensions.ID = "sbx-aaaaaaaaaaaaaaaaaaaa"

// Prepare reads an image as a vendor's builder gets it, which has no wall: its builds reach the network.
func Prepare(ctx context.Context, img extensions.Image, src extensions.WorkspaceSource) (Rendered, error) {
	p, err := FromImage(ctx, img, src)
	if err != nil {
		return Rendered{}, err
	}
	return p.Render(RenderOptions{ID: anySandbox, Service: AgentService, Network: NetworkAllow})
}

// CheckVendor refuses, with KindUnsupported, what builders of vendors are not told: a stage that is not the last, and
// another platform than linux/amd64. vendor names the builder in messages.
func (b Build) CheckVendor(vendor string) error {
	unsupported := func(what, remedy string) error {
		return extensions.Errorf(extensions.KindUnsupported, "%s: %s builds %s", extensions.Clean(b.Dockerfile, 80), vendor, what).
			At("image.build").WithRemedy("%s", remedy)
	}
	last := ""
	for _, in := range b.Instructions {
		if words := strings.Fields(in.Args); in.Verb == "FROM" && len(words) > 0 {
			last = words[len(words)-1]
		}
	}
	if b.Target != "" && !strings.EqualFold(b.Target, last) {
		return unsupported("the last stage only", "put the stage "+extensions.Clean(b.Target, 40)+" last, or drop target")
	}
	for _, base := range append([]Base{{Platform: b.Platform}}, b.Bases...) {
		if !slices.Contains([]string{"", "linux", "linux/amd64"}, base.Platform) {
			return unsupported("for linux/amd64 only", "drop the platform")
		}
	}
	return nil
}

// Recipe is one image for a builder that takes Dockerfiles.
type Recipe struct {
	What  string   // for people
	Lines []string // of the Dockerfile
	Takes []string // images of registries
	Build *Build   // nil = an image as it is
}

// Recipes returns those of an image in order, the last one's is run, and what the contract calls its digest. Without an image,
// it is the one named otherwise.
func Recipes(ctx context.Context, vendor string, img *extensions.Image, src extensions.WorkspaceSource, otherwise string) (
	in Rendered, all []Recipe, digest string, err error) {
	pull := func(image string) []Recipe {
		return []Recipe{{What: "the image " + image, Lines: []string{"FROM " + image}, Takes: []string{image}}}
	}
	if img == nil {
		return in, pull(otherwise), "sha256:" + ociimage.Key(otherwise), nil
	}
	if in, err = Prepare(ctx, *img, src); err != nil {
		return in, nil, "", err
	}
	if len(in.Builds) == 0 {
		return in, pull(in.Pulls[0].Image), in.PrepareDigest(), nil
	}
	for i := range in.Builds {
		b := &in.Builds[i]
		text, err := in.Dockerfile(*b)
		if err = errors.Join(b.CheckVendor(vendor), err); err != nil {
			return in, nil, "", err
		}
		r := Recipe{What: "the image of " + b.Dockerfile, Lines: strings.Split(strings.TrimSpace(text), "\n"), Build: b}
		for _, base := range b.Bases {
			r.Takes = append(r.Takes, base.Image)
		}
		all = append(all, r)
	}
	return in, all, in.PrepareDigest(), nil
}

// Copies reports whether an instruction takes files of the context.
func (b Build) Copies() bool {
	return slices.ContainsFunc(b.Instructions, func(in Instruction) bool {
		return in.Verb == "ADD" || in.Verb == "COPY" && !slices.ContainsFunc(in.Flags, func(f Flag) bool { return f.Name == "from" })
	})
}

// WithArgs returns a Dockerfile with the build's arguments in it, for a builder that is told none: each is declared once more,
// with its value, where the Dockerfile declares it. A value of several lines is KindUnsupported.
func (b Build) WithArgs(text string) (string, error) {
	lines := strings.SplitAfter(strings.TrimRight(text, "\n")+"\n", "\n")
	for _, in := range slices.Backward(b.Instructions) {
		if in.Verb != "ARG" || in.Last > len(lines) {
			continue
		}
		for _, word := range strings.Fields(in.Args) {
			name, _, _ := strings.Cut(word, "=")
			value, given := b.Args[name]
			if !given {
				continue
			}
			if strings.ContainsAny(value, "\r\n") {
				return "", extensions.Errorf(extensions.KindUnsupported, "%s: the argument %s has several lines", extensions.Clean(b.Dockerfile, 80),
					extensions.Clean(name, 80)).At("image.build.args").WithRemedy("write it into a file of the context")
			}
			lines = slices.Insert(lines, in.Last, "ARG "+name+`="`+dockerWord.Replace(value)+"\"\n")
		}
	}
	return strings.Join(lines, ""), nil
}

// dockerWord is a value between double quotes of a Dockerfile.
var dockerWord = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`)

// WriteRegular writes the files of a build's context as a tar stream, for a builder that takes regular files only: a link to a file
// is that file, and folders come with what is in them.
func (r Rendered) WriteRegular(ctx context.Context, b Build, w io.Writer) error {
	out := tar.NewWriter(w)
	put := func(at string, mode uint32, size int64, content io.Reader) error {
		err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(at, "/"), Mode: int64(mode), Size: size})
		if err == nil {
			_, err = io.Copy(out, content)
		}
		return err
	}
	links, err := r.EachFile(ctx, b, put)
	if err != nil {
		return err
	}
	for _, link := range slices.Sorted(maps.Keys(links)) { // each again, because two may lead to one file
		if _, err := r.EachFile(ctx, b, func(at string, mode uint32, size int64, content io.Reader) error {
			if at != links[link] {
				return nil
			}
			return put(link, mode, size, content)
		}); err != nil {
			return err
		}
	}
	return out.Close()
}

// EachFile shows the files of a build's context, as WriteContext leaves them, by their absolute paths in it. Links to
// files are in links, by path; those to anything else are left out.
func (r Rendered) EachFile(ctx context.Context, b Build,
	show func(at string, mode uint32, size int64, content io.Reader) error) (links map[string]string, err error) {
	from, to := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		_ = to.CloseWithError(r.WriteContext(ctx, b, "", to))
	}()
	defer func() {
		_ = from.Close()
		<-written
	}()
	shown, links := map[string]bool{}, map[string]string{}
	for all := tar.NewReader(from); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at := path.Join("/", h.Name) //nolint:gosec // a name for a vendor: nothing is extracted
		switch {
		case h.Name == ContextDockerfile || h.Name == ignoreFile:
		case h.Typeflag == tar.TypeSymlink:
			links[at] = path.Clean(h.Linkname)
			if !path.IsAbs(h.Linkname) {
				links[at] = path.Join(path.Dir(at), h.Linkname) //nolint:gosec // likewise
			}
		case h.Typeflag == tar.TypeReg:
			shown[at] = true
			if err := show(at, uint32(h.Mode), h.Size, all); err != nil {
				return nil, err
			}
		}
	}
	for at, target := range links {
		if !shown[target] {
			delete(links, at)
		}
	}
	return links, nil
}
