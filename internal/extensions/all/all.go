// Package all is the list of adapters, and the only package that names them.
package all

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/command"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/composessh"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/docker"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/modal"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/vercel"
)

// Extensions lists every adapter there is: one line each.
func Extensions() []extensions.Extension {
	return []extensions.Extension{
		local.New(),
		composessh.New(),
		docker.New(),
		e2b.New(),
		daytona.New(),
		vercel.New(),
		modal.New(),
		openshell.New(),
		command.New(),
		saasstub.New(),
		saasstub.NewEventual(),
	}
}
