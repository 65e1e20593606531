// Package daytona runs sandboxes at Daytona (daytona.io), containers and virtual machines rented by the second, or at the version of
// it that users run themselves (0.190), containers.
//
// # Where it runs
//
// In the vendor's cloud, in the organization of the credential, or on the user's own installation: the binding's edition says
// which. The API (spec/api.json, spec/oss-v0.190.0-api.yaml) makes, lists and ends sandboxes; the toolbox, a daemon inside each
// (spec/toolbox.json, spec/oss-v0.190.0-toolbox.yaml), runs commands and moves files.
//
// # Needs
//
// An API key, or a JWT with its organization. Commands need a shell and the usual small programs, files need tar.
//
// # Expiry
//
// The cloud's own, by the minute. An own installation has no deadline: the next run of sandboxer ends a sandbox, and one that
// nobody uses for its whole ttl ends by itself.
//
// # Leaves behind
//
// Snapshots that were kept, and the files of builds in the vendor's store.
package daytona

import (
	"context"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/pace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/rest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shelf"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

//go:generate go -C spec run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi.yaml oss-v0.190.0-api.yaml

// Handler is the name that bindings of this extension use.
const Handler = "daytona"

type extension struct{}

// New returns the extension.
func New() extensions.Extension { return extension{} }

// Open implements extensions.Extension. It contacts nobody.
func (x extension) Open(ctx context.Context, cfg extensions.Config) (_ extensions.Backend, err error) {
	defer tell("open", "", &err)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := bound(x, cfg)
	if err != nil {
		return nil, err
	}
	if b.token, b.secrets, err = credentials(cfg.Credentials); err != nil {
		return nil, err
	}
	if b.inside, err = webcall.Client(nil); err != nil {
		return nil, err
	}
	b.control, err = rest.Open(rest.Options{Vendor: vendor, Base: b.apiURL, Judge: judge, Bearer: b.token, Secrets: b.secrets})
	b.creates = pace.Of(cfg.Values, defaultPerMinute)
	return b, err
}

// bound is what the config of a binding says, without a credential.
func bound(x extension, cfg extensions.Config) (b *backend, err error) {
	b = &backend{forking: make(chan struct{}, 1)}
	if b.settings, err = parseConfig(cfg); err == nil {
		b.desc, err = extensions.Declared(x, cfg.Values)
	}
	b.Place = byname.Place[*sandbox]{Vendor: vendor, Handle: handle, Look: b.look, List: b.list, Tell: b.observe, Make: b.prepare,
		Clear: b.clear, End: b.end, Gone: gone}
	b.Door = indoors.Door{Vendor: vendor, Enter: b.enter, Start: b.desktop}
	b.Shelf = shelf.Shelf{Vendor: vendor, Handler: Handler, Version: handleVersion, Ref: refName, Declared: b.desc.Snapshots,
		Each: b.listed, Take: b.taken, Taking: b.taking, Sure: true, Drop: b.drop}
	return b, err
}

// credentials returns the token of all calls, and the other secret fields of them.
func credentials(given map[string]extensions.Secret) (token extensions.Secret, fields map[string]extensions.Secret, err error) {
	if key := given[credentialKey]; !key.IsZero() {
		return key, nil, nil
	}
	jwt, organization := given[credentialJWT], given[credentialOrganization]
	if jwt.IsZero() || organization.IsZero() {
		return token, nil, extensions.Errorf(extensions.KindUnauthorized, "there is no credential for %s", vendor).
			WithRemedy("set the credential api_key of this extension, or DAYTONA_API_KEY; or jwt_token with organization_id")
	}
	return jwt, map[string]extensions.Secret{"X-Daytona-Organization-Id": organization}, nil
}

// Identity implements extensions.Identifier: a user's token lasts for hours, and its organization stays. Nothing tells that of a key.
func (extension) Identity(cfg extensions.Config) string {
	return cfg.Credentials[credentialOrganization].Reveal()
}

// backend is one account, a part of an organization at the vendor.
type backend struct {
	settings
	byname.Place[*sandbox] // makes, finds, watches and ends sandboxes
	indoors.Door           // commands, files, and what a sandbox is filled with
	shelf.Shelf            // snapshots

	desc    extensions.Descriptor
	token   extensions.Secret
	secrets map[string]extensions.Secret
	control *rest.Client
	inside  *http.Client  // speaks to toolboxes
	creates *rate.Limiter // the binding's creates per minute, kept by waiting
	homes   sync.Map      // the vendor's id of a sandbox -> home of its user
	forking chan struct{} // held by the fork that keeps its source's state
}

// Close implements extensions.Backend.
func (b *backend) Close() error {
	b.control.Close()
	b.inside.CloseIdleConnections()
	return nil
}
