package docker

import (
	"context"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ready"
)

// A request that our death leaves with the engine is carried out all the same, perhaps after the next run has
// looked. So each container is made of an image by a name of its own, the claim, which exists before the first
// container does: Find sees it, and where it was taken away the engine makes no container any more. The network
// has a claim only to be seen.

// claim gives the image of a container the container's name.
func (m *making) claim(ctx context.Context, i image, tag string) error {
	if !i.named { // the claim would be its only name, and it would end with that
		return nil
	}
	return m.tag(ctx, i.id, string(m.plan.spec.ID), tag)
}

// claims makes all of them.
func (m *making) claims(ctx context.Context) error {
	for _, tag := range m.netTags() {
		if err := m.claim(ctx, m.madeOf(m.agent), tag); err != nil {
			return err
		}
	}
	for _, s := range m.all() {
		if err := m.claim(ctx, m.madeOf(s), tagFor(s)); err != nil {
			return err
		}
	}
	return nil
}

// netTags are the claims of what the containers meet at.
func (m *making) netTags() []string {
	switch {
	case m.wired():
		return []string{nameNetwork, nameWire, nameKeeper, nameTrial}
	case m.networked():
		return []string{nameNetwork}
	}
	return nil
}

func (m *making) claimTags() []string {
	tags := m.netTags()
	for _, s := range m.all() {
		tags = append(tags, tagFor(s))
	}
	return tags
}

func tagFor(s service) string {
	if s.Name == extensions.AgentService {
		return nameNew
	}
	return nameService + s.Name
}

// imageRef is what the container of a service is created from.
func (m *making) imageRef(s service) string {
	i := m.madeOf(s)
	if !i.named {
		return i.id
	}
	return reference(string(m.plan.spec.ID), tagFor(s))
}

// unclaim removes what only the create needs. The images of a copy keep their claims: they live as long as the
// sandbox.
func (m *making) unclaim(ctx context.Context) error {
	k := kept{key: string(m.plan.spec.ID)}
	if m.ownImages() {
		for _, tag := range m.claimTags() {
			if err := m.untag(ctx, reference(k.key, tag)); err != nil {
				return err
			}
		}
		return nil
	}
	k, err := m.kept(ctx, k.key)
	if err != nil {
		return err
	}
	return m.dropCopy(ctx, k, func(tag string) bool { return !isContainer(tag) })
}

// isContainer reports that a tag is the end of a container's name.
func isContainer(tag string) bool {
	return tag == nameNew || tag == nameKeeper || tag == nameTrial || strings.HasPrefix(tag, nameService)
}

// revoke ends the claims of a sandbox that was not completed. What the engine has begun to make exists when
// revoke returns, and what it has not begun it will not make.
func (b *Backend) revoke(ctx context.Context, o objects) error {
	for tag, i := range o.kept.tags {
		var err error
		switch {
		case (tag == nameNetwork || tag == nameWire) && !o.network(tag): // an engine makes one bridge at a time
			_, err = b.createNetwork(ctx, string(o.id)+tag, 1, client.NetworkCreateOptions{Driver: "bridge", Labels: o.placeholder()})
			if extensions.IsKind(err, extensions.KindConflict) { // it has just been made
				err = nil
			}
		case isContainer(tag):
			if i.Labels[labelCopy] != "" { // it is our image, and outlives its container
				err = b.tag(ctx, i.ID, string(o.id), tagContainer+"-"+strings.Trim(tag, "."))
			}
			if err == nil {
				err = b.reserve(ctx, o, tag)
			}
		case tag != nameNetwork && tag != nameWire:
			continue
		}
		if err == nil {
			err = b.untag(ctx, reference(string(o.id), tag))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reserve takes a container's name. If somebody else has it, that container is there, or is being made: wait
// until it can be seen.
func (b *Backend) reserve(ctx context.Context, o objects, tag string) error {
	name := string(o.id) + tag
	return ready.Wait{Timeout: cleanupTime}.Until(ctx, func(ctx context.Context) (string, error) {
		_, err := b.engine.ContainerCreate(ctx, idle(name, reference(string(o.id), tag), o.placeholder()))
		if errdefs.IsNotFound(err) { // somebody else has ended the claim
			return "", nil
		}
		if !errdefs.IsConflict(err) {
			return "", err
		}
		if _, err = b.engine.ContainerInspect(ctx, name, client.ContainerInspectOptions{}); errdefs.IsNotFound(err) {
			return "the engine is making " + name, nil
		}
		return "", err
	})
}

// placeholder are the labels of what only takes a name.
func (o objects) placeholder() map[string]string {
	all := unlabeled()
	all[labelHandler], all[extensions.LabelID], all[extensions.LabelAccount] = Handler, string(o.id), o.account
	return all
}
