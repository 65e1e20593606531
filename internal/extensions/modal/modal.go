// Package modal runs sandboxes at Modal (modal.com): gVisor containers and GPUs, rented by the second.
//
// # Where it runs
//
// At the vendor, in one app of one environment of the token's workspace. The control plane makes, finds and ends
// sandboxes; a task's command router, another host, runs commands and takes snapshots.
//
// The vendor has two backends. V2 is its default; V1 alone has GPUs. A handle says whose its sandbox is.
//
// # The vendor's SDK
//
// The SDK makes apps and sandboxes, by a connection of ours: it reads neither the user's files nor MODAL_ variables, and
// repeats nothing. What the SDK does not say or take (how a sandbox ended, a build's files and log, a snapshot's own id, a
// terminal's size) is asked through the SDK's generated stubs.
//
// # Needs
//
// A token. Images with /bin/sh and tar.
//
// # Expiry
//
// Native, by the second, at most 24 hours, fixed at the create.
//
// # Leaves behind
//
// An app, which is free; built images, which the vendor keeps as its cache; snapshots that were kept, for 30 days.
package modal

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/modal-labs/modal-client/go"
	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/byname"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/grpcline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/held"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/indoors"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/pace"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shelf"
)

// Handler is the name that bindings of this extension use.
const Handler = "modal"

type extension struct{}

// New returns the extension.
func New() extensions.Extension { return extension{} }

// Open implements extensions.Extension. It contacts nobody.
func (x extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	return extensions.Opened(x.open(ctx, cfg))
}

func (x extension) open(ctx context.Context, cfg extensions.Config) (*backend, error) {
	b, err := x.at(cfg)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	id, secret := cfg.Credentials[credentialID], cfg.Credentials[credentialSecret]
	if err = b.dial(id, secret); err != nil {
		return nil, err
	}
	var never time.Duration
	p := &sdk.ClientParams{TokenID: id.Reveal(), TokenSecret: secret.Reveal(), Environment: b.environment,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), MaxThrottleWait: &never, ControlPlaneClient: b.control}
	blank(&p.Config)
	if b.sdk, err = sdk.NewClientWithOptions(p); err != nil {
		b.line.Close()
		return nil, err
	}
	b.header = append(b.header, "x-modal-libmodal-version", "modal-go/"+b.sdk.Version())
	return b, nil
}

// at is a backend that is connected to nothing.
func (x extension) at(cfg extensions.Config) (*backend, error) {
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, err
	}
	b := &backend{settings: s, creates: pace.Of(cfg.Values, defaultPerMinute)}
	b.desc, err = extensions.Declared(x, cfg.Values)
	b.Place = byname.Place[seen]{Vendor: vendor, Handle: handle, Look: b.look, List: b.list, Tell: tell, Make: b.prepare,
		Refused: refused, End: b.end, Gone: gone}
	b.Door = indoors.Door{Vendor: vendor, Enter: b.enter}
	b.Shelf = shelf.Shelf{Vendor: vendor, Handler: Handler, Version: handleVersion, Ref: imageRef, Declared: b.desc.Snapshots,
		Each: b.published, Take: b.take, Drop: b.drop}
	return b, err
}

// blank sets p to an empty value: the SDK reads the user's file for a nil one, and its type has no name outside.
func blank[T any](p **T) { *p = new(T) }

// backend is one account, a part of a workspace at the vendor.
type backend struct {
	settings
	byname.Place[seen] // makes, finds, watches and ends sandboxes
	indoors.Door       // commands, files, and what a sandbox is filled with
	shelf.Shelf        // snapshots

	desc    extensions.Descriptor
	line    grpcline.Line
	header  []string // of every call to the control plane, names and values in turn
	control pb.ModalClientClient
	sdk     *sdk.Client
	token   held.Value[string] // the session's
	entered sync.Map           // sandbox's own name -> access
	creates *rate.Limiter      // the binding's creates per minute
}

// Close implements extensions.Backend.
func (b *backend) Close() error {
	b.sdk.Close()
	b.line.Close()
	return nil
}
