// Command terraform-provider-sandboxer serves the Terraform provider. A person who starts it gets the
// sandboxer command line over the same engine.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/cli"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/all"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/provider"
)

// version is set by the release build.
var version = "dev"

func main() {
	args := os.Args[1:]
	if !provider.Launched(args) {
		os.Exit(cli.Main(args, version, all.Extensions()))
	}
	if err := provider.Serve(context.Background(), args, version, all.Extensions()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
