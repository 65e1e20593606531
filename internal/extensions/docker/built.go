package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

const (
	// labelImages has the keys of what was built for a sandbox, in build order, at its agent's container.
	labelImages = "sandboxer.images"
	// builtRepository has what is built here, apart from what stacks on the same engine build.
	builtRepository = "sandboxer.invalid/image"
	// keptRepository has a second name of each built image that outlives its sandboxes.
	keptRepository = "sandboxer.invalid/kept"
	// unusedTime is how long a built image without a sandbox may wait for one: its create may be under way elsewhere.
	unusedTime = 15 * time.Minute
)

func (p *plan) builtKeys() []string {
	keys := make([]string, 0, len(p.rendered.Builds))
	for _, x := range p.rendered.Builds {
		keys = append(keys, x.Digest)
	}
	return keys
}

func builtTag(key string) string { return builtRepository + ":" + key }

// keepBuilt gives an image, if it is there, the name that keeps it.
func (b *Backend) keepBuilt(ctx context.Context, p *plan, x compose.Build) error {
	if !p.keep {
		return nil
	}
	_, err := b.engine.ImageTag(ctx, client.ImageTagOptions{Source: x.Tag, Target: keptRepository + ":" + x.Digest})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// release removes what was built for a sandbox whose containers are gone: a stage before its base, unless somebody
// else runs it or it is to be kept. It also removes what killed runs left. residue says what stays.
func (b *Backend) release(ctx context.Context, keys []string) (removed bool, residue []string, err error) {
	if len(keys) == 0 {
		return false, nil, nil
	}
	for _, key := range slices.Backward(keys) {
		gone, why, err := b.drop(ctx, key, 0)
		if err != nil {
			return removed, residue, err
		}
		if removed = removed || gone; why != "" {
			residue = append(residue, why)
		}
	}
	return removed, residue, b.sweepImages(ctx)
}

// drop removes one built image that nobody uses, and that got its name longer than idle ago: it may have been built from
// layers of long ago.
func (b *Backend) drop(ctx context.Context, key string, idle time.Duration) (gone bool, residue string, err error) {
	tag := builtTag(key)
	r, err := b.engine.ImageInspect(ctx, tag)
	if errdefs.IsNotFound(err) || err == nil && (!isBuilt(r, key) || time.Since(r.Metadata.LastTagTime) < idle) {
		return false, "", nil
	}
	if err != nil {
		return false, "", err
	}
	if slices.Contains(r.RepoTags, keptRepository+":"+key) {
		return false, "the image " + tag + ", which the profile keeps", nil
	}
	users, err := b.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("ancestor", r.ID)})
	if err != nil {
		return false, "", err
	}
	if len(users.Items) > 0 {
		return false, fmt.Sprintf("the image %s, which other containers use", tag), nil
	}
	history, err := b.engine.ImageHistory(ctx, r.ID)
	if err != nil && !errdefs.IsNotFound(err) {
		return false, "", err
	}
	below := []string{r.ID}
	for _, h := range history.Items {
		below = append(below, h.ID)
	}
	_, err = b.engine.ImageRemove(ctx, tag, client.ImageRemoveOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return false, "", nil
	case errdefs.IsConflict(err):
		return false, fmt.Sprintf("the image %s, which something else uses", tag), nil
	case err != nil:
		// An engine also fails if somebody else removes a layer at the same time.
		if _, left := b.engine.ImageInspect(ctx, tag); !errdefs.IsNotFound(left) {
			return false, "", err
		}
	}
	b.sweepLayers(ctx, below, nil, 0)
	return true, "", nil
}

// topLayers lists the nameless images of builds that no other is based on.
func (b *Backend) topLayers(ctx context.Context) (map[string]time.Time, error) {
	r, err := b.engine.ImageList(ctx, client.ImageListOptions{
		Filters: make(client.Filters).Add("dangling", "true").Add("label", labelLayer+"=1")})
	if err != nil {
		return nil, err
	}
	all := map[string]time.Time{}
	for _, i := range r.Items {
		if i.Labels[extensions.LabelID] == "" { // else it was made of a sandbox
			all[i.ID] = time.Unix(i.Created, 0)
		}
	}
	return all, nil
}

// sweepLayers removes nameless layers by the beginnings of their ids, from the last one down and one by one: an engine
// that keeps its images in containerd would also remove those of other images. A layer that somebody still uses after
// patience stays.
func (b *Backend) sweepLayers(ctx context.Context, ids []string, but map[string]time.Time, patience time.Duration) {
	b.sweepTops(ctx, patience, func(id string, _ time.Time) bool {
		_, older := but[id]
		return !older && slices.ContainsFunc(ids, func(beginning string) bool {
			return len(beginning) >= shortID && strings.HasPrefix(strings.TrimPrefix(id, "sha256:"), strings.TrimPrefix(beginning, "sha256:"))
		})
	})
}

// shortID is the length of the shortest id that an engine prints.
const shortID = 12

// sweepTops removes the nameless layers that match, and those below them that do, with time of its own: a build that
// was cancelled leaves some too. It tries for as long as patience to remove those that are in use.
func (b *Backend) sweepTops(ctx context.Context, patience time.Duration, match func(id string, made time.Time) bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	for end, again := time.Now().Add(patience), true; again; {
		again = false
		used := false
		tops, err := b.topLayers(ctx)
		if err != nil {
			return
		}
		for id, made := range tops {
			if match(id, made) {
				_, err := b.engine.ImageRemove(ctx, id, client.ImageRemoveOptions{})
				again = again || err == nil
				used = used || errdefs.IsConflict(err)
			}
		}
		if used && !again && time.Now().Before(end) {
			again = true
			time.Sleep(stepEnds)
		}
	}
}

// sweepImages removes what killed runs built and no sandbox uses.
func (b *Backend) sweepImages(ctx context.Context) error {
	r, err := b.engine.ImageList(ctx, client.ImageListOptions{
		Filters: make(client.Filters).Add("label", labelBuild).Add("reference", builtRepository)})
	if err != nil {
		return err
	}
	for _, i := range r.Items {
		key := i.Labels[labelBuild]
		if time.Since(time.Unix(i.Created, 0)) < unusedTime || !slices.Contains(i.RepoTags, builtTag(key)) {
			continue
		}
		if _, _, err := b.drop(ctx, key, unusedTime); err != nil {
			return err
		}
	}
	b.sweepTops(ctx, 0, func(_ string, made time.Time) bool { return time.Since(made) > unusedTime })
	return nil
}
