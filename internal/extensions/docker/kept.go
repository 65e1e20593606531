package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	imageapi "github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// Labels of the images that a copy of a sandbox consists of.
const (
	labelCopy = "sandboxer.copy" // the copy's key: the id of a snapshot, or of the sandbox that is made of it
	labelName = "sandboxer.name"
	labelPath = "sandboxer.path" // of a volume
)

// What follows the key in the tag of an image. A container's name is one, too: see claim.
const (
	tagOf        = ".of-" // and the sandbox that is copied: first and last of all
	tagContainer = ".c"
	tagVolume    = ".v"
	tagWorkspace = ".stream"
	tagWhole     = ".whole." // and kind, size and digest: the copy is complete
)

// kept are the images with one key, by what follows it in their tags.
type kept struct {
	key  string
	tags map[string]imageapi.Summary
}

func reference(key, tag string) string { return ociimage.Copies + ":" + key + tag }

// kept lists the images of one key.
func (b *Backend) kept(ctx context.Context, key string) (kept, error) {
	k := kept{key, map[string]imageapi.Summary{}}
	r, err := b.engine.ImageList(ctx, client.ImageListOptions{Filters: make(client.Filters).Add("reference", reference(key, ".*"))})
	if err != nil {
		return k, asked(err)
	}
	for _, i := range r.Items {
		for _, tag := range i.RepoTags {
			if rest, ok := strings.CutPrefix(tag, reference(key, "")); ok {
				k.tags[rest] = i
			}
		}
	}
	return k, nil
}

func (k kept) none() bool { return len(k.tags) == 0 }

// source is the sandbox that is, or was, copied.
func (k kept) source() extensions.ID {
	for tag, i := range k.tags {
		if id, ok := strings.CutPrefix(tag, tagOf); ok {
			return extensions.ID(id)
		}
		if strings.HasPrefix(tag, tagWhole) {
			return extensions.ID(i.Labels[extensions.LabelID])
		}
	}
	return ""
}

// snapshot describes a complete copy; false if it is not complete.
func (k kept) snapshot() (extensions.Snapshot, bool) {
	for tag, i := range k.tags {
		parts := strings.Split(tag, ".")
		if !strings.HasPrefix(tag, tagWhole) || len(parts) != 5 {
			continue
		}
		size, _ := strconv.ParseInt(parts[3], 10, 64)
		return extensions.Snapshot{SandboxID: k.source(), Kind: extensions.SnapshotKind(parts[2]), SizeBytes: size, Digest: "sha256:" + parts[4],
			CreatedAt: time.Unix(i.Created, 0).UTC(), Handle: k.handle(i.ID)}, true
	}
	return extensions.Snapshot{}, false
}

// handle points to the copy; ref is the image that stands for it, or the key.
func (k kept) handle(ref string) extensions.SnapshotHandle {
	return extensions.SnapshotHandle{Extension: Handler, Version: handleVersion, ID: k.key, Ref: ref}
}

// account is the owner's name; false if no image tells.
func (k kept) account() (string, bool) {
	for _, i := range k.tags {
		if i.Labels[labelCopy] == k.key {
			return i.Labels[extensions.LabelAccount], true
		}
	}
	return "", false
}

// each returns the images whose tags begin so, in the order of their tags.
func (k kept) each(prefix string) []imageapi.Summary {
	var list []imageapi.Summary
	for _, tag := range slices.Sorted(maps.Keys(k.tags)) {
		if strings.HasPrefix(tag, prefix) {
			list = append(list, k.tags[tag])
		}
	}
	return list
}

// sum is the digest of a copy that consists of images: each image's id is the digest of its content.
func (k kept) sum() string {
	h := sha256.New()
	for _, i := range slices.Concat(k.each(tagContainer), k.each(tagVolume)) {
		_, _ = fmt.Fprintf(h, "%s %s %s\n", i.Labels[labelService], i.Labels[labelPath], i.ID)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// dropCopy removes the images with a key that pick selects: what makes the copy whole first, its source's name last.
func (b *Backend) dropCopy(ctx context.Context, k kept, pick func(tag string) bool) error {
	rank := func(tag string) int {
		switch {
		case strings.HasPrefix(tag, tagWhole):
			return 0
		case strings.HasPrefix(tag, tagOf):
			return 2
		}
		return 1
	}
	tags := slices.SortedFunc(maps.Keys(k.tags), func(a, b string) int { return rank(a) - rank(b) })
	var parents []string
	for _, tag := range tags {
		if pick != nil && !pick(tag) {
			continue
		}
		if err := b.untag(ctx, reference(k.key, tag)); err != nil {
			return err
		}
		if i := k.tags[tag]; i.Labels[labelCopy] != "" && i.ParentID != "" {
			parents = append(parents, i.ParentID)
		}
	}
	return b.prune(ctx, parents)
}

// untag removes a name, and with its last name an image, unless something uses it.
func (b *Backend) untag(ctx context.Context, ref string) error {
	_, err := b.engine.ImageRemove(ctx, ref, client.ImageRemoveOptions{})
	if errdefs.IsConflict(err) { // its only name, and a container uses it
		_, err = b.engine.ImageRemove(ctx, ref, client.ImageRemoveOptions{Force: true})
	}
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// prune removes images of ours that have lost their names, and that another one of ours, now gone, was built on.
func (b *Backend) prune(ctx context.Context, parents []string) error {
	if len(parents) == 0 {
		return nil
	}
	r, err := b.engine.ImageList(ctx, client.ImageListOptions{Filters: having(labelCopy)})
	if err != nil {
		return err
	}
	ours := map[string]imageapi.Summary{}
	for _, i := range r.Items {
		ours[i.ID] = i
	}
	for _, id := range parents {
		for i, ok := ours[id]; ok && nameless(i); i, ok = ours[i.ParentID] {
			_, err := b.engine.ImageRemove(ctx, i.ID, client.ImageRemoveOptions{})
			if errdefs.IsConflict(err) {
				break
			}
			if err != nil && !errdefs.IsNotFound(err) {
				return err
			}
		}
	}
	return nil
}

// nameless reports that an image has no tag; old engines list an empty one then.
func nameless(i imageapi.Summary) bool {
	return !slices.ContainsFunc(i.RepoTags, func(name string) bool { return !strings.HasPrefix(name, "<none>") })
}

// sweep removes what killed copies of a sandbox left: the engine finishes an image whoever is gone.
func (b *Backend) sweep(ctx context.Context, of extensions.ID, now hold) error {
	r, err := b.engine.ImageList(ctx, client.ImageListOptions{Filters: having(extensions.LabelID+"="+string(of), labelCopy)})
	if err != nil {
		return err
	}
	seen := map[string]bool{now.key: true}
	for _, i := range r.Items {
		key := i.Labels[labelCopy]
		if seen[key] || !extensions.ValidSnapshotID(key) && !validID(key) {
			continue
		}
		seen[key] = true
		k, err := b.kept(ctx, key)
		if err != nil {
			return err
		}
		if _, whole := k.snapshot(); whole {
			continue
		}
		if err := b.dropCopy(ctx, k, isPart); err != nil {
			return err
		}
	}
	return nil
}

func isPart(tag string) bool {
	parts := []string{tagContainer, tagVolume, tagWorkspace, tagOf}
	return slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(tag, p) })
}

func validID(s string) bool {
	_, err := extensions.ParseID(s)
	return err == nil
}
