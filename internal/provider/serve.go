package provider

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// debugFlag serves the provider for a debugger: terraform is pointed to the
// process by the TF_REATTACH_PROVIDERS line that it prints.
const debugFlag = "-debug"

// gcPercent is how much the heap may grow, in percent of what lives, before
// garbage is collected.
const gcPercent = 400

// Launched reports whether Terraform (or a debugger) started this process to
// serve the provider. The cookie is part of Terraform's plugin handshake.
func Launched(args []string) bool {
	return os.Getenv("TF_PLUGIN_MAGIC_COOKIE") != "" || slices.Equal(args, []string{debugFlag})
}

// Serve runs the provider until Terraform closes it, then releases what it opened.
func Serve(ctx context.Context, args []string, version string, exts []extensions.Extension) error {
	if os.Getenv("GOGC") == "" {
		// A provider lives for one command and holds little: memory is cheaper
		// here than the time of whoever waits for the plan.
		debug.SetGCPercent(gcPercent)
	}
	p := New(version, exts)
	debugged := slices.Contains(args, debugFlag)
	if !debugged {
		watching, done := context.WithCancel(ctx)
		defer done()
		go endWithParent(watching, os.Getppid, orphanLook, orphanGrace, p.orphaned)
	}
	err := providerserver.Serve(ctx, func() provider.Provider { return p }, providerserver.ServeOpts{
		Address:         Address,
		Debug:           debugged,
		ProtocolVersion: 6,
	})
	return errors.Join(err, p.Close())
}
