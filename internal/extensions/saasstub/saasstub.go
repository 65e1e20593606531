// Package saasstub is a metered vendor that needs nothing: a test double with the habits of a real one.
//
// # Where it runs
//
// Nowhere. The vendor is a folder on this machine (see package vendor), its isolation and egress are claims,
// and a small shell that reaches only the sandbox's own files interprets its commands. Not for code you do
// not trust.
//
// # Needs
//
// A writable folder.
//
// # Capabilities
//
// Everything a metered vendor usually offers: native expiry, a meter, quota, regions, labels, files,
// commands, logs, addresses of ports, pause (it holds the commands under way), snapshots of metadata and files, forks.
// No raw ports or images. Its two handlers differ in one thing: a look-up at saas-stub sees a new object at once, at
// saas-stub-eventual only after a while.
//
// # Expiry
//
// Native: create sends the deadline and the vendor's clock decides. An ended sandbox stays listed as expired,
// with its true end, until it is torn down.
//
// # Leaves behind
//
// The vendor's own folder: its state, its script and its snapshots.
package saasstub

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// The handlers.
const (
	Handler         = "saas-stub"
	EventualHandler = "saas-stub-eventual"
)

// Settle is how long the eventual handler's look-ups may miss a new object; Lag is how long they do unless
// the binding's config says otherwise. Claim is the first deadline of a create there.
const (
	Settle = 2 * time.Second
	Lag    = 500 * time.Millisecond
	Claim  = time.Minute
)

const handleVersion = 1

type (
	// Script is the vendor's script: what a test makes it do wrong.
	Script = vendor.Script
	// Rule is one line of a Script.
	Rule = vendor.Rule
)

// WriteScript makes s the behavior of the vendor in dir, in every process.
func WriteScript(dir string, s Script) error { return vendor.WriteScript(dir, s) }

type extension struct{ eventual bool }

// New returns the strongly consistent vendor, handler saas-stub.
func New() extensions.Extension { return extension{} }

// NewEventual returns the vendor whose look-ups lag, handler saas-stub-eventual.
func NewEventual() extensions.Extension { return extension{eventual: true} }

func (e extension) handler() string {
	if e.eventual {
		return EventualHandler
	}
	return Handler
}

// Open implements extensions.Extension.
func (e extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, failed("open", "", err)
	}
	values, err := parseConfig(e, cfg)
	if err != nil {
		return nil, err
	}
	b := &backend{extension: e.handler(), account: cfg.Account}
	if b.desc, err = extensions.Declared(e, cfg.Values); err != nil {
		return nil, err
	}
	b.region = values.region
	key := cfg.Credentials[credentialKey].Reveal()
	script, err := vendor.ReadScript(values.dir)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the stub vendor's script: %w", err).
			WithRemedy("correct or remove %s", filepath.Join(values.dir, "script.json"))
	}
	if script.RequireKey && key == "" {
		return nil, failed("open", "", &vendor.Fault{Code: vendor.CodeUnauthorized, Message: "a key is required"})
	}
	b.client = vendor.At(values.dir).Client(cfg.Account, key, values.lag)
	if values.trial {
		b.client = b.client.OnTrial()
	}
	return b, nil
}

// backend is one account of the vendor; it holds nothing open.
type backend struct {
	extension string
	desc      extensions.Descriptor
	account   string
	region    string
	client    *vendor.Client
}

// Close implements extensions.Backend.
func (b *backend) Close() error { return nil }

var regions = slices.Clone(vendor.Regions)
