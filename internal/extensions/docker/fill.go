package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// memoryDir holds secrets that become variables; extensions.SecretsDir holds those that are files. Both are in
// memory, so they are in no image that is made of the container.
const memoryDir = "/run/sandboxer"

var shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// memory returns what is in memory in a container, with mount options. A copy may have the folder, where its
// source had the memory.
func (m *making) memory(s service) map[string]string {
	spec := m.plan.spec
	if s.Name != extensions.AgentService || len(spec.Secrets) == 0 && m.copies == nil {
		return nil
	}
	const options = "rw,noexec,nosuid,nodev,mode=1777,size=16m"
	all := map[string]string{memoryDir: options}
	if spec.Delivery() == extensions.SecretsFile {
		all[extensions.SecretsDir] = options
	}
	return all
}

// fill puts the workspace and the instructions into a container that has not started.
func (m *making) fill(ctx context.Context, id string, who owner) error {
	home := m.workdir()
	if home == "" && m.plan.spec.Instructions == "" {
		return nil
	}
	if m.access == extensions.AccessRO && who.uid == 0 {
		return extensions.Errorf(extensions.KindUnsupported, "root inside can write to a read-only workspace").At("workspace.access").
			WithRemedy("leave the option user empty, or set it to an ordinary user")
	}
	f := filling{ctx: ctx, owner: who, readOnly: m.access == extensions.AccessRO, open: m.open}
	if src := m.plan.spec.Workspace.Source; src != nil && f.open == nil {
		f.open = src.Open
	}
	if home == "" {
		home = who.home
	}
	f.root = strings.TrimPrefix(home, "/")
	return m.engine.copyIn(ctx, id, "/", func(w io.Writer) error {
		f.out = tarstream.NewDenseRelay(w, tarstream.DefaultMaxBytes)
		return f.write(m.plan.spec, m.workdir() != "" && m.copies == nil) // a copy has its workspace
	})
}

// copyIn extracts what write writes below dir.
func (e *engine) copyIn(ctx context.Context, id, dir string, write func(io.Writer) error) error {
	r, w := io.Pipe()
	wrote := make(chan error, 1)
	go func() {
		err := write(w)
		_ = w.CloseWithError(err)
		wrote <- err
	}()
	_, err := e.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: dir, Content: r})
	_ = r.CloseWithError(errStopped)
	if failed := <-wrote; failed != nil && !errors.Is(failed, errStopped) {
		return failed
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if kind := classify(err).Kind; kind != extensions.KindInternal && kind != extensions.KindInvalid {
		return err
	}
	return extensions.Errorf(extensions.KindFailed, "the engine could not write the files: %s", extensions.Clean(err.Error(), maxMessage)).
		WithRemedy("if something in the image is in the way, use another image; otherwise check the engine")
}

var errStopped = errors.New("the engine stopped reading")

// filling writes a workspace as the engine extracts it: owned by the sandbox's user, or by root if it is
// read-only.
type filling struct {
	ctx      context.Context
	out      *tarstream.Relay
	root     string // relative to /
	owner    owner
	readOnly bool
	open     func(context.Context) (io.ReadCloser, error) // what fills the workspace; nil = nothing
}

func (f filling) write(spec extensions.Spec, workspace bool) error {
	if workspace {
		if err := f.put(tar.Header{Typeflag: tar.TypeDir, Name: f.root + "/", Mode: 0o755}, nil); err != nil {
			return err
		}
	}
	if f.open != nil && workspace {
		if err := f.copy(spec.Instructions != ""); err != nil {
			return err
		}
	}
	if text := spec.Instructions; text != "" {
		at := path.Join(f.root, extensions.InstructionsPath)
		if err := f.put(tar.Header{Typeflag: tar.TypeDir, Name: path.Dir(at) + "/", Mode: 0o755}, nil); err != nil {
			return err
		}
		if err := f.file(at, 0o644, []byte(text)); err != nil {
			return err
		}
	}
	return f.out.Close()
}

// copy passes a source on to its end, where it may turn out not to be what it was to be; without is set if its
// instructions give way to ours.
func (f filling) copy(without bool) error {
	stream, err := f.open(f.ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	in := tarstream.NewReader(stream)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, stream)
			return err
		}
		if err == nil {
			err = f.ctx.Err()
		}
		if err != nil {
			return unreadable(err)
		}
		name := path.Clean(h.Name)
		if h.Typeflag == tar.TypeXGlobalHeader || name == "." || without && name == extensions.InstructionsPath {
			continue
		}
		if !filepath.IsLocal(name) {
			return refusedEntry(h)
		}
		out := tar.Header{Typeflag: h.Typeflag, Name: path.Join(f.root, name), Linkname: h.Linkname, Mode: h.Mode & 0o777, ModTime: h.ModTime}
		switch h.Typeflag {
		case tar.TypeDir:
			out.Name += "/"
		case tar.TypeLink:
			if !filepath.IsLocal(path.Clean(h.Linkname)) {
				return refusedEntry(h)
			}
			out.Linkname = path.Join(f.root, path.Clean(h.Linkname))
		case tar.TypeReg, tar.TypeSymlink:
		default:
			return refusedEntry(h)
		}
		if err := f.put(out, in); err != nil {
			return unreadable(err)
		}
	}
}

func refusedEntry(h *tar.Header) error {
	return extensions.Errorf(extensions.KindInvalid, "the workspace has the entry %s, which is not a file or folder below it",
		tarstream.Quote(h.Name))
}

// unreadable is the error of a stream that is no archive.
func unreadable(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tarstream.ErrSparse) {
		return extensions.Errorf(extensions.KindInvalid, "the workspace is not a complete archive: %w", err).
			WithRemedy("do not use this copy; fetch it again from its source")
	}
	return fmt.Errorf("reading the workspace: %w", err)
}

func (f filling) file(name string, mode int64, data []byte) error {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write(data)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	in := tarstream.NewReader(&b)
	h, err := in.Next()
	if err != nil {
		return err
	}
	return f.put(*h, in)
}

func (f filling) put(h tar.Header, from *tarstream.Reader) error {
	h.Uid, h.Gid = f.owner.uid, f.owner.gid
	if f.readOnly {
		h.Uid, h.Gid = 0, 0
		if h.Typeflag != tar.TypeSymlink {
			h.Mode = h.Mode&^0o222 | 0o444
		}
		if h.Typeflag == tar.TypeDir {
			h.Mode |= 0o555
		}
	}
	if err := f.out.Put(h, from); err != nil {
		return err
	}
	return f.out.Flush()
}

// startAgent starts the agent and hands it its secrets over its standard input, which nothing records.
func (m *making) startAgent(ctx context.Context, id string) error {
	spec := m.plan.spec
	if len(spec.Secrets) == 0 {
		return m.start(ctx, id, m.agent.Image)
	}
	if err := m.secure(ctx, id); err != nil {
		return err
	}
	in, err := m.engine.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdin: true})
	if err != nil {
		return err
	}
	defer in.Close()
	if err := m.start(ctx, id, m.agent.Image); err != nil {
		return err
	}
	if end, ok := ctx.Deadline(); ok {
		_ = in.Conn.SetDeadline(end)
	}
	if _, err := io.WriteString(in.Conn, secretLines(spec)); err != nil {
		return fmt.Errorf("handing over the secrets: %w", err)
	}
	return in.CloseWrite()
}

// secretLines are the lines that sh/watch.sh reads.
func secretLines(spec extensions.Spec) string {
	var b strings.Builder
	line := func(path, content string) { b.WriteString(path + " " + escape(content) + "\n") }
	for _, name := range slices.Sorted(maps.Keys(spec.Secrets)) {
		value := spec.Secrets[name].Reveal()
		if spec.Delivery() == extensions.SecretsFile {
			line(extensions.SecretsDir+"/"+name, value)
			continue
		}
		// A variable of the request, or of the profile, counts more.
		line(memoryDir+"/env", `[ -n "${`+name+`+x}" ] || export `+name+`='`+strings.ReplaceAll(value, `'`, `'\''`)+"'\n")
	}
	b.WriteString("\n")
	return b.String()
}

// escape writes bytes as printf %b reads them.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c > 0x20 && c < 0x7f && c != '\\' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\0%03o`, c)
		}
	}
	return b.String()
}
