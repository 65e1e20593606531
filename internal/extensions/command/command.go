// Package command is the adapter of extensions in any language: a program on this machine, which a binding of the
// catalog names, speaks the contract over its standard streams.
//
// Each verb is one run of the program: `PROGRAM VERB`, in an empty environment, with one line of JSON on stdin and one
// JSON object on stdout. The verb exec carries the streams of a command in frames. docs/guides/write-an-extension.md
// is the description for authors; wire.go has the same as Go types.
//
// What the program declares is in the binding's manifest, so that a plan never runs it. It runs only if the person who
// runs sandboxer allowed its path, and only if nobody else can have written it.
package command

import (
	"context"
	"slices"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Handler is the name that catalogs bind to.
const Handler = "command"

// New returns the extension.
func New() extensions.Extension { return extension{} }

type extension struct{}

// Open implements extensions.Extension. It runs nothing.
func (x extension) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := x.open(cfg)
	if err != nil {
		return nil, failed("open", "", err)
	}
	return b, nil
}

func (x extension) open(cfg extensions.Config) (*backend, error) {
	s, err := parseConfig(cfg)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(cfg.AllowedCommands, s.command) {
		return nil, extensions.Errorf(extensions.KindUnauthorized, "the binding %s runs the program %s, which is not allowed",
			cfg.Binding, s.command).
			WithRemedy("if you trust it, name it in the provider's allowed_commands, or in $SANDBOXER_ALLOWED_COMMANDS for the command line")
	}
	if _, err := resolve(s.command); err != nil {
		return nil, err
	}
	d, err := extensions.Declared(x, cfg.Values)
	return &backend{settings: s, desc: d}, err
}

// backend is one program, as one account sees it.
type backend struct {
	settings
	desc extensions.Descriptor
}

// Close implements extensions.Backend. Nothing is kept open between calls.
func (*backend) Close() error { return nil }
