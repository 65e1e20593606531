package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

// image is what a container takes over from its image.
type image struct {
	id         string // "sha256:…", so that all containers run the same one
	user       string
	entrypoint []string
	cmd        []string
	named      bool // it has a name of its own, so that another one can come and go
	copied
}

// commandLine returns what the image runs, with given instead of its own command.
func (i image) commandLine(given []string) []string {
	if len(given) == 0 {
		given = i.cmd
	}
	return append(append([]string{}, i.entrypoint...), given...)
}

// PrepareImage implements extensions.ImagePreparer.
func (b *Backend) PrepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	digest, err := b.prepareImage(ctx, spec)
	return digest, failed("prepare-image", spec.ID, err)
}

func (b *Backend) prepareImage(ctx context.Context, spec extensions.Spec) (string, error) {
	p, err := newPlan(ctx, b.settings, spec)
	if err != nil {
		return "", err
	}
	m := &making{Backend: b, plan: p}
	if err = m.origin(ctx); err == nil && m.ownImages() {
		_, err = b.images(ctx, p)
	}
	if err != nil {
		if b.engine.over == nil {
			err = notHere(asked(err))
		}
		return "", err
	}
	return p.rendered.PrepareDigest(), nil
}

// images puts every image of a plan on the engine, and returns them by the names that its containers have. If it
// fails, it leaves nothing of what it built for the plan alone.
func (b *Backend) images(ctx context.Context, p *plan) (all map[string]image, err error) {
	all = map[string]image{}
	defer func() {
		if err == nil || len(p.rendered.Builds) == 0 {
			return
		}
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		if _, _, failed := b.release(clean, p.builtKeys()); failed != nil && !noEngine(failed) {
			err = errors.Join(err, failed)
		}
	}()
	for _, pull := range p.rendered.Pulls {
		r, err := b.have(ctx, p.spec, compose.Base{Image: pull.Image, Platform: pull.Platform})
		if err != nil {
			return nil, err
		}
		if all[pull.Image], err = imageOf(r); err != nil {
			return nil, err
		}
	}
	for _, x := range p.rendered.Builds {
		r, err := b.built(ctx, p, x)
		if err != nil {
			return nil, err
		}
		if all[x.Tag], err = imageOf(r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// imageOf refuses an image with a port that is none: what the engine says of its containers cannot be read.
func imageOf(r client.ImageInspectResult) (image, error) {
	i := image{id: r.ID, named: len(r.RepoTags)+len(r.RepoDigests) > 0}
	c := r.Config
	if c == nil {
		return i, nil
	}
	for port := range c.ExposedPorts {
		if _, err := network.ParsePort(port); err != nil {
			return i, extensions.Errorf(extensions.KindUnsupported, "the image exposes the port %q, which is none", extensions.Clean(port, 80)).
				WithRemedy("use another image")
		}
	}
	i.user, i.entrypoint, i.cmd = c.User, c.Entrypoint, c.Cmd
	return i, nil
}

// lacks reports that a path is certainly not in a container.
func (e *engine) lacks(ctx context.Context, id, at string) bool {
	_, err := e.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: at})
	return errdefs.IsNotFound(err)
}

// lacksOurs reports whether a container that has not started lacks a folder of our name. Each image is asked for once.
func (e *engine) lacksOurs(ctx context.Context, image, container string) bool {
	if image == "" {
		return e.lacks(ctx, container, ownDir)
	}
	e.ownersMu.Lock()
	defer e.ownersMu.Unlock()
	if !e.lacking[image] {
		e.lacking[image] = e.lacks(ctx, container, ownDir)
	}
	return e.lacking[image]
}

// owner is a user of a container.
type owner struct {
	uid, gid int
	home     string
	named    bool     // by a name, not by a number
	groups   []string // numbers of the further groups of a name
}

// maxPasswd bounds what is read of a container's file of users, in bytes.
const maxPasswd = 1 << 20

// ownerIn is owner for a container that has not started, so that an image's files are asked for once: reading them
// takes the engine longer than anything else of a create but the container itself. image "" = unknown.
func (e *engine) ownerIn(ctx context.Context, image, container, user string) (owner, error) {
	if image == "" {
		return e.owner(ctx, container, user)
	}
	e.ownersMu.Lock() // also while it asks: those who create at once have the same question
	defer e.ownersMu.Unlock()
	key := image + " " + user
	if who, known := e.owners[key]; known {
		return who, nil
	}
	who, err := e.owner(ctx, container, user)
	if err == nil {
		e.owners[key] = who
	}
	return who, err
}

// owner returns the ids of a user as Docker resolves "name", "uid", "name:group" or "uid:gid": the first line that matches
// wins, what is no number is 0, and of a larger number the lowest 32 bits count.
func (e *engine) owner(ctx context.Context, container, user string) (owner, error) {
	parts := strings.Split(user, ":")
	name, group := parts[0], at(parts, 1)
	uid, bad := strconv.Atoi(name)
	who := owner{uid: int(uint32(uid)), home: "/", named: bad != nil && name != ""}
	found, err := e.lines(ctx, container, "/etc/passwd", func(f []string) bool {
		if who.named && f[0] != name || !who.named && number(at(f, 2)) != uid {
			return false
		}
		who.uid, who.gid = int(uint32(number(at(f, 2)))), int(uint32(number(at(f, 3))))
		if home := at(f, 5); path.IsAbs(home) {
			who.home = path.Clean(home)
		}
		return true
	})
	if err != nil {
		return who, err
	}
	if who.named && !found && name != "root" {
		return who, lacksUser("user", name)
	}
	gid, bad := strconv.Atoi(group)
	if bad == nil {
		who.gid = int(uint32(gid))
	}
	if bad == nil || group == "" && !who.named {
		return who, nil
	}
	found, err = e.lines(ctx, container, "/etc/group", func(f []string) bool {
		gid := int(uint32(number(at(f, 2))))
		if group == "" && slices.Contains(strings.Split(at(f, 3), ","), name) {
			who.groups = append(who.groups, strconv.Itoa(gid))
		}
		if group == "" || f[0] != group {
			return false
		}
		who.gid = gid
		return true
	})
	if err == nil && group != "" && !found {
		err = lacksUser("group", group)
	}
	return who, err
}

func lacksUser(what, name string) error {
	return extensions.Errorf(extensions.KindUnsupported, "the image has no %s %q", what, extensions.Clean(name, 80)).
		WithRemedy("set the option user to a user of the image, or to uid:gid")
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func at(fields []string, i int) string {
	if i < len(fields) {
		return fields[i]
	}
	return ""
}

// lines passes the lines of a file inside, cut at colons, to match, until it returns true. A file that is not
// there has none.
func (e *engine) lines(ctx context.Context, container, file string, match func([]string) bool) (bool, error) {
	r, err := e.CopyFromContainer(ctx, container, client.CopyFromContainerOptions{SourcePath: file})
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Content.Close() }()
	in := tar.NewReader(r.Content)
	if _, err := in.Next(); err != nil {
		return false, err
	}
	text := bufio.NewScanner(io.LimitReader(in, maxPasswd))
	text.Buffer(nil, maxPasswd)
	for text.Scan() {
		if line := strings.TrimSpace(text.Text()); line != "" && match(strings.Split(line, ":")) {
			return true, nil
		}
	}
	if err := text.Err(); !errors.Is(err, bufio.ErrTooLong) {
		return false, err
	}
	return false, nil // it reaches beyond what is read
}
