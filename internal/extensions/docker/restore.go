package docker

import (
	"archive/tar"
	"context"
	"encoding/json"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// copied is what an image of a copy has beside its files; empty for any other image.
type copied struct {
	labels  map[string]string
	volumes map[string]string // images of streams, by paths inside
}

// configured is what an image runs, as the containers made of it say: their copies would say what they ran.
type configured struct {
	User       string   `json:"user,omitempty"`
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
}

func (i image) label() string {
	b, _ := json.Marshal(configured{i.user, i.entrypoint, i.cmd}) // strings cannot fail
	return string(b)
}

func readImage(label string) image {
	var c configured
	_ = json.Unmarshal([]byte(label), &c) // what is not ours runs nothing of its own
	return image{user: c.User, entrypoint: c.Entrypoint, cmd: c.Cmd}
}

// origin prepares what a sandbox is made of instead of images and a workspace.
func (m *making) origin(ctx context.Context) error {
	spec := m.plan.spec
	if spec.FromSnapshot == nil {
		return nil
	}
	lacksWorkspace := func() error {
		if m.workdir() != "" {
			return nil
		}
		return extensions.Errorf(extensions.KindInvalid, "a snapshot of a workspace restores only into a workspace").At("workspace.access").
			WithRemedy("set workspace.access, or use a snapshot of kind %s", extensions.SnapshotFilesystem)
	}
	if src := spec.FromSnapshot.Source; src != nil {
		m.open = func(ctx context.Context) (io.ReadCloser, error) { return tarstream.OpenSource(ctx, src) }
		return lacksWorkspace()
	}
	k, err := m.resolveSnapshot(ctx, spec.FromSnapshot.Handle)
	if err != nil {
		return err
	}
	s, err := m.statSnapshot(ctx, k.key)
	if err != nil {
		return err
	}
	if s.Kind == extensions.SnapshotWorkspace {
		m.open = func(ctx context.Context) (io.ReadCloser, error) { return m.stream(ctx, k), nil }
		return lacksWorkspace()
	}
	if s.Digest != "sha256:"+k.sum() {
		return extensions.Errorf(extensions.KindInvalid, "the snapshot %s is damaged: its images are not those that were kept", k.key).
			At("from_snapshot").WithRemedy("use another snapshot")
	}
	return m.takeOver(k)
}

// stream reads a snapshot of a workspace by a container with the sandbox's name.
func (m *making) stream(ctx context.Context, k kept) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		err := m.readSnapshot(ctx, k, string(m.plan.spec.ID)+nameReader, m.labels(m.plan.spec, ""), w)
		_ = w.CloseWithError(err)
	}()
	return r
}

// takeOver makes a copy's images those of the containers.
func (m *making) takeOver(k kept) error {
	m.copies = k.containers()
	var want []string
	for _, s := range m.all() {
		want = append(want, s.Name)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(m.copies)); !slices.Equal(got, want) {
		return extensions.Errorf(extensions.KindInvalid, "its source has the containers %s, the profile has %s",
			extensions.Clean(strings.Join(got, " "), 400), strings.Join(want, " ")).
			WithRemedy("use the source's profile, or a snapshot of kind %s", extensions.SnapshotWorkspace)
	}
	agent := m.copies[extensions.AgentService].labels
	if at := agent[labelWorkDir]; at != m.workdir() {
		return extensions.Errorf(extensions.KindInvalid, "its source has its workspace at %q, the profile at %q",
			extensions.Clean(at, 200), m.workdir()).WithRemedy("use the source's profile")
	}
	if m.access == extensions.AccessRO && agent[labelAccess] != extensions.AccessRO {
		return extensions.Errorf(extensions.KindUnsupported, "its source's files can be written to inside").At("workspace.access").
			WithRemedy("use a snapshot of kind %s for a read-only workspace", extensions.SnapshotWorkspace)
	}
	return nil
}

// ownImages reports that the containers are made of the profile's images.
func (m *making) ownImages() bool { return m.copies == nil && m.plan.spec.FromSandbox == "" }

// madeOf returns what the container of a service is made of.
func (m *making) madeOf(s service) image {
	if i, ok := m.copies[s.Name]; ok {
		return i
	}
	return m.images[s.Image]
}

// settle prepares a container for its start. One of a copy gets its volumes. One whose image has a folder of our name, or is
// a copy, gets a lease in a folder of root's: it may have one of its own, or that of a sandbox that it was made of. A folder
// that an image has, or a copy of its source, would give its mode to the memory above it.
func (m *making) settle(ctx context.Context, s service, id string) error {
	i := m.copies[s.Name]
	var modes []tar.Header
	for _, at := range slices.Sorted(maps.Keys(m.memory(s))) {
		modes = append(modes, tar.Header{Name: strings.TrimPrefix(at, "/") + "/", Mode: 0o1777})
	}
	if s.Name == extensions.AgentService && m.plan.spec.IdleReap > 0 {
		modes = append(modes, idleFiles("use", "idle", "ending")...)
	}
	for _, at := range slices.Sorted(maps.Keys(i.volumes)) {
		err := m.retrieve(ctx, i.volumes[at], string(m.plan.spec.ID)+nameReader, m.labels(m.plan.spec, ""), func(r io.Reader) error {
			_, err := m.engine.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: path.Dir(at), Content: r})
			return err
		})
		if err != nil {
			return err
		}
	}
	if m.copies == nil && len(modes) == 0 && m.engine.lacksOurs(ctx, m.images[s.Image].id, id) {
		return nil // the first process has the deadline among its arguments
	}
	return m.writeLease(ctx, id, m.plan.spec.Deadline, modes...)
}
