package daytona

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/bucket"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/spool"
)

// planned returns the Dockerfile of a spec's image, and the build that it belongs to, nil for an image as it is.
func planned(ctx context.Context, spec extensions.Spec) (text string, x *compose.Build, in compose.Rendered, err error) {
	if in, err = compose.Prepare(ctx, *spec.Image, spec.Workspace.Source); err != nil {
		return "", nil, in, err
	}
	switch len(in.Builds) {
	case 0:
		return "FROM " + in.Pulls[0].Image + "\n", nil, in, nil
	case 1:
		x = &in.Builds[0]
	default:
		return "", nil, in, extensions.Errorf(extensions.KindUnsupported, "%s builds one Dockerfile: no stages on top of each other", vendor).
			At("image.stages").WithRemedy("write the stages into one Dockerfile, each with its FROM, and use image.build")
	}
	if err = x.CheckVendor(vendor); err == nil {
		text, err = in.Dockerfile(*x)
	}
	if err == nil {
		text, err = x.WithArgs(text)
	}
	return text, x, in, err
}

// built is what the vendor builds an image from; the files that the build takes are in its store then.
func (b *backend) built(ctx context.Context, spec extensions.Spec) (*api.CreateBuildInfo, error) {
	text, x, in, err := planned(ctx, spec)
	if err != nil {
		return nil, err
	}
	out := &api.CreateBuildInfo{DockerfileContent: text}
	if x != nil && x.Copies() {
		hash, err := b.bring(ctx, x, in)
		if err != nil {
			return nil, err
		}
		out.ContextHashes = &[]string{hash}
	}
	return out, nil
}

// bring puts the files of a build into the vendor's store, unless it has them, and returns their hash.
func (b *backend) bring(ctx context.Context, x *compose.Build, in compose.Rendered) (hash string, err error) {
	var packed spool.Spool
	defer func() { _ = packed.Close() }()
	sum := sha256.New()
	if err := in.WriteRegular(ctx, *x, io.MultiWriter(&packed, sum)); err != nil {
		return "", err
	}
	hash = hex.EncodeToString(sum.Sum(nil))
	lent, _, err := rest.Ask(ctx, b.control, rest.Call{Method: http.MethodGet, Path: []string{"object-storage", "push-access"}},
		func(s *store) bool { return s.Bucket != "" && s.OrganizationId != "" })
	if err != nil {
		return "", err
	}
	to := bucket.Bucket{Endpoint: lent.StorageUrl, Region: lent.Region, Name: lent.Bucket, Key: lent.AccessKey,
		Secret: extensions.NewSecret(lent.Secret), Session: extensions.NewSecret(lent.SessionToken), HTTP: b.inside}
	key := lent.OrganizationId + "/" + hash + "/context.tar"
	has, err := to.Has(ctx, key)
	if err != nil || has {
		return hash, err
	}
	r, err := packed.Reader()
	if err != nil {
		return "", err
	}
	extensions.Progress(ctx, "Sending the files of "+x.Dockerfile, strconv.FormatInt(packed.Size>>10, 10)+" KiB")
	return hash, to.Put(ctx, key, r, packed.Size, hash)
}
