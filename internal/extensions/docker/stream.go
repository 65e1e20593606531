package docker

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A stream of bytes is kept as an image whose only folder has it in pieces. So an engine stores it without
// looking into it, and gives back the same bytes.
const (
	pieces    = "pieces"
	pieceSize = 4 << 20
)

// maxKept bounds a container's own files, a volume and a workspace in a copy, in bytes. Holes count: an engine
// fills them, and nothing inside could otherwise be kept from filling its disk.
const maxKept = 16 << 30

func tooBig(what string) error {
	return extensions.Errorf(extensions.KindInvalid, "%s is larger than %d GiB, holes included, so it cannot be copied", what, maxKept>>30).
		WithRemedy("remove large files inside")
}

// cutter writes what it gets as files of one size.
type cutter struct {
	out  *tar.Writer
	buf  []byte
	n    int
	size int64
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.size += int64(len(p)); c.size > maxKept {
		return 0, tooBig("its content")
	}
	for rest := p; len(rest) > 0; {
		n := min(pieceSize-len(c.buf), len(rest))
		c.buf, rest = append(c.buf, rest[:n]...), rest[n:]
		if len(c.buf) == pieceSize {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(p), nil
}

func (c *cutter) flush() error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("%s/%08d", pieces, c.n), Mode: 0o600, Size: int64(len(c.buf))}
	err := c.out.WriteHeader(&h)
	if err == nil {
		_, err = c.out.Write(c.buf)
	}
	c.buf, c.n = c.buf[:0], c.n+1
	return err
}

func cut(w io.Writer, write func(io.Writer) error) error {
	c := &cutter{out: tar.NewWriter(w), buf: make([]byte, 0, pieceSize)}
	err := c.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: pieces + "/", Mode: 0o700})
	if err == nil {
		err = write(c)
	}
	if err == nil {
		err = c.flush()
	}
	if err == nil {
		err = c.out.Close()
	}
	return err
}

// store keeps what write writes as an image with a name and labels.
func (b *Backend) store(ctx context.Context, ref string, labels map[string]string, write func(io.Writer) error) error {
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := cut(w, write)
		_ = w.CloseWithError(err)
		wrote <- err
	}()
	o := client.ImageImportOptions{}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		o.Changes = append(o.Changes, "LABEL "+quoted(name)+"="+quoted(labels[name]))
	}
	answer, err := b.engine.ImageImport(ctx, client.ImageImportSource{Source: r, SourceName: "-"}, ref, o)
	if err == nil {
		err = imported(answer)
		_ = answer.Close()
	}
	_ = r.CloseWithError(errStopped)
	if failed := <-wrote; failed != nil && !errors.Is(failed, errStopped) {
		return failed
	}
	return err
}

// imported reads an engine's answer to its end.
func imported(r io.Reader) error {
	for in := json.NewDecoder(r); ; {
		var m struct{ Status, Error string }
		err := in.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Error != "":
			return extensions.Errorf(extensions.KindUnavailable, "the engine did not keep it: %s", extensions.Clean(m.Error, maxMessage))
		}
	}
}

// quoted writes a value as a change of an image's configuration has it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(extensions.Clean(s, 1000)) + `"`
}

// retrieve passes a stream that store kept to read. Only a container shows an image's files: one with the given
// name and labels, that never runs.
func (b *Backend) retrieve(ctx context.Context, image, name string, labels map[string]string, read func(io.Reader) error) error {
	made, err := b.engine.ContainerCreate(ctx, idle(name, image, labels))
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		_ = b.engine.discard(ctx, made.ID)
	}()
	r, err := b.engine.CopyFromContainer(ctx, made.ID, client.CopyFromContainerOptions{SourcePath: "/" + pieces})
	if err != nil {
		return err
	}
	defer func() { _ = r.Content.Close() }()
	return read(&joined{in: tar.NewReader(r.Content)})
}

// idle is a container that never runs, in a folder that any engine makes.
func idle(name, image string, labels map[string]string) client.ContainerCreateOptions {
	return client.ContainerCreateOptions{Name: name, HostConfig: &container.HostConfig{NetworkMode: "none"},
		Config: &container.Config{Image: image, Cmd: []string{"-"}, WorkingDir: "/", Labels: labels}}
}

// joined reads the pieces one after another.
type joined struct {
	in    *tar.Reader
	n     int
	piece bool
}

func (j *joined) Read(p []byte) (int, error) {
	for {
		if j.piece {
			n, err := j.in.Read(p)
			if !errors.Is(err, io.EOF) {
				return n, err
			}
			if j.piece = false; n > 0 {
				return n, nil
			}
		}
		h, err := j.in.Next()
		if err != nil {
			return 0, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if h.Name != fmt.Sprintf("%s/%08d", pieces, j.n) {
			return 0, extensions.Errorf(extensions.KindInvalid, "a kept stream has the file %q", extensions.Clean(h.Name, 80))
		}
		j.n, j.piece = j.n+1, true
	}
}
