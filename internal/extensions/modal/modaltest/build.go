package modaltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// longestFile is what a call takes of one file, in bytes; larger ones go to another store, which the fake lacks.
const longestFile = 4 << 20

// MountPutFile implements pb.ModalClientServer: the first call asks for the content, the second brings it.
func (p plane) MountPutFile(_ context.Context, in *pb.MountPutFileRequest) (*pb.MountPutFileResponse, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	hash := in.GetSha256Hex()
	if !in.HasData() {
		_, known := p.v.contents[hash]
		return pb.MountPutFileResponse_builder{Exists: known}.Build(), nil
	}
	sum := sha256.Sum256(in.GetData())
	if hex.EncodeToString(sum[:]) != hash || len(in.GetData()) > longestFile {
		return nil, refuse(codes.InvalidArgument, "%d bytes are not %s", len(in.GetData()), hash)
	}
	p.v.contents[hash] = in.GetData()
	return pb.MountPutFileResponse_builder{Exists: true}.Build(), nil
}

// MountGetOrCreate implements pb.ModalClientServer. Mounts of the same files are the same.
func (p plane) MountGetOrCreate(_ context.Context, in *pb.MountGetOrCreateRequest) (*pb.MountGetOrCreateResponse, error) {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	if in.GetObjectCreationType() != pb.ObjectCreationType_OBJECT_CREATION_TYPE_EPHEMERAL || in.GetEnvironmentName() == "" {
		return nil, refuse(codes.InvalidArgument, "a mount of type %s", in.GetObjectCreationType())
	}
	sum := sha256.New()
	for _, f := range in.GetFiles() {
		if _, known := p.v.contents[f.GetSha256Hex()]; !known || !path.IsAbs(f.GetFilename()) {
			return nil, refuse(codes.InvalidArgument, "file %q", f.GetFilename())
		}
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(f)
		if err != nil {
			return nil, err
		}
		sum.Write(text)
	}
	id := "mo-" + hex.EncodeToString(sum.Sum(nil))[:22]
	p.v.mounts[id] = in.GetFiles()
	return pb.MountGetOrCreateResponse_builder{MountId: id}.Build(), nil
}

// building is a build under way.
type building struct {
	v     *Vendor
	of    *image
	box   *box.Box
	dir   string
	env   map[string]string
	args  map[string]string // as they were given
	mount []*pb.MountFile
	log   strings.Builder
}

// carryOut does what an image's lines say, and returns what was printed.
func (v *Vendor) carryOut(i *image) (log string, err error) {
	b := &building{v: v, of: i, dir: "/", env: map[string]string{}, args: i.asked.GetBuildArgs(), mount: i.mount}
	maps.Copy(b.env, i.from.env)
	defer func() {
		if b.box != nil {
			err = errors.Join(err, b.box.Kill())
		}
	}()
	for _, line := range i.asked.GetDockerfileCommands() {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		fmt.Fprintln(&b.log, line)
		if err := b.do(strings.ToUpper(verb), strings.TrimSpace(rest)); err != nil {
			return b.log.String(), err
		}
	}
	if b.box != nil {
		i.folder = b.box.Root
	} else {
		i.folder = i.from.folder
	}
	i.env = b.env
	return b.log.String(), nil
}

func (b *building) do(verb, rest string) error {
	switch name, value, set := strings.Cut(rest, "="); verb {
	case "FROM", "ENTRYPOINT", "CMD", "LABEL", "EXPOSE", "":
	case "ARG":
		if given, ok := b.args[name]; ok {
			value, set = given, true
		}
		if set {
			b.env[name] = value
		}
	case "ENV":
		b.env[name] = strings.Trim(value, `"`)
	case "WORKDIR":
		b.dir = path.Join(b.dir, rest)
		return b.run(`mkdir -p "` + b.dir + `"`)
	case "RUN":
		return b.run(rest)
	case "COPY":
		return b.copy(strings.Fields(rest))
	default:
		return fmt.Errorf("the fake builds no %s", verb)
	}
	return nil
}

// room is where the build happens.
func (b *building) room() (err error) {
	if b.box != nil {
		return nil
	}
	b.v.mu.Lock()
	b.v.serial++
	name := fmt.Sprintf("image%d", b.v.serial)
	b.v.mu.Unlock()
	if from := b.of.from.folder; from != "" {
		b.box, err = b.v.shelf.Copy(name, from, homes)
	} else {
		b.box, err = b.v.shelf.New(name, homes)
	}
	return err
}

func (b *building) run(script string) error {
	if err := b.room(); err != nil {
		return err
	}
	c := exec.Command("/bin/sh", "-c", `cd "$0" && `+script, b.dir) //nolint:noctx // bounded by what a test wrote
	c.Env = []string{"PATH=" + box.SearchPath, "HOME=/root"}
	for _, name := range slices.Sorted(maps.Keys(b.env)) {
		c.Env = append(c.Env, name+"="+b.env[name])
	}
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := b.box.Start(c)
	if err == nil {
		err = c.Wait()
	}
	b.log.Write(out.Bytes())
	return err
}

// copy puts files of the mount where a Dockerfile's COPY would.
func (b *building) copy(words []string) error {
	if err := b.room(); err != nil {
		return err
	}
	to := words[len(words)-1]
	whole := strings.HasSuffix(to, "/") || len(words) > 2
	if !path.IsAbs(to) {
		to = path.Join(b.dir, to)
	}
	found := false
	for _, word := range words[:len(words)-1] {
		from := path.Join("/", word)
		for _, f := range b.mount {
			at := to
			if rel, under := strings.CutPrefix(f.GetFilename(), strings.TrimSuffix(from, "/")+"/"); under {
				at = path.Join(to, rel)
			} else if f.GetFilename() != from {
				continue
			} else if whole {
				at = path.Join(to, path.Base(from))
			}
			found = true
			if err := b.write(at, f); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("COPY %v: not found", words)
	}
	return nil
}

func (b *building) write(at string, f *pb.MountFile) error {
	b.v.mu.Lock()
	text := b.v.contents[f.GetSha256Hex()]
	b.v.mu.Unlock()
	host := b.box.Host(at)
	if err := os.MkdirAll(path.Dir(host), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(host, text, 0o600); err != nil {
		return err
	}
	return os.Chmod(host, os.FileMode(f.GetMode()).Perm())
}
