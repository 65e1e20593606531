package provider

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// debugFlag serves the provider for a debugger: the process prints a TF_REATTACH_PROVIDERS line that points
// Terraform to it.
const debugFlag = "-debug"

// gcPercent is how far the heap may grow before a collection, in percent of live memory.
const gcPercent = 400

// quiet stops the plugin libraries from writing a trace that Terraform drops. Without TF_LOG and
// TF_LOG_PROVIDER it shows nothing of a provider's log, yet writing and parsing it took a third of a plan's
// time. A level that the user set for this provider alone stays.
func quiet() error {
	if os.Getenv("TF_LOG") != "" || os.Getenv("TF_LOG_PROVIDER") != "" {
		return nil
	}
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_PROVIDER_SANDBOXER"} {
		if os.Getenv(name) == "" {
			if err := os.Setenv(name, "off"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Launched reports whether Terraform (or a debugger) started this process to serve the provider. The cookie
// is part of Terraform's plugin handshake.
func Launched(args []string) bool {
	return os.Getenv("TF_PLUGIN_MAGIC_COOKIE") != "" || slices.Equal(args, []string{debugFlag})
}

// Serve runs the provider until Terraform closes it, then releases what it opened.
func Serve(ctx context.Context, args []string, version string, exts []extensions.Extension) error {
	if os.Getenv("GOGC") == "" {
		// A provider lives for one command and holds little: memory is cheaper here than the time of whoever
		// waits for the plan.
		debug.SetGCPercent(gcPercent)
	}
	p := New(version, exts)
	debugged := slices.Contains(args, debugFlag)
	if !debugged {
		if err := quiet(); err != nil {
			return err
		}
		watching, done := context.WithCancel(ctx)
		defer done()
		go endWithParent(watching, os.Getppid, orphanLook, orphanGrace, p.orphaned)
	}
	var opts []tf6server.ServeOpt
	if debugged {
		opts = append(opts, tf6server.WithManagedDebug())
	}
	err := tf6server.Serve(Address, p.server, opts...)
	return errors.Join(err, p.Close())
}
