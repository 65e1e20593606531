package daytona

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/bucket"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/spool"
)

// built is what the vendor builds a spec's image from. send puts the files that the build takes into its store.
func (b *backend) built(ctx context.Context, spec extensions.Spec, send bool) (*api.CreateBuildInfo, error) {
	in, err := compose.Prepare(ctx, *spec.Image, spec.Workspace.Source)
	switch {
	case err != nil:
		return nil, err
	case len(in.Builds) == 0:
		return &api.CreateBuildInfo{DockerfileContent: "FROM " + in.Pulls[0].Image + "\n"}, nil
	case len(in.Builds) > 1:
		return nil, extensions.Errorf(extensions.KindUnsupported, "%s builds one Dockerfile: no stages on top of each other", vendor).
			At("image.stages").WithRemedy("write the stages into one Dockerfile, each with its FROM, and use image.build")
	}
	x, out := &in.Builds[0], &api.CreateBuildInfo{}
	if err = x.CheckVendor(vendor); err == nil {
		out.DockerfileContent, err = in.Dockerfile(*x)
	}
	if err == nil {
		out.DockerfileContent, err = x.WithArgs(out.DockerfileContent)
	}
	if err != nil || !send || !x.Copies() {
		return out, err
	}
	hash, err := b.bring(ctx, x, in)
	out.ContextHashes = &[]string{hash}
	return out, err
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
	return hash, to.Bring(ctx, lent.OrganizationId+"/"+hash+"/context.tar", hash, "the files of "+x.Dockerfile, &packed)
}
