//go:build live

package openshell_test

import (
	"os"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell"
)

// TestLive holds a gateway of yours to the contract, as far as nothing has to break for that. Each check has an account label of its
// own, so it lists its own sandboxes only. The default image must have /bin/sh, tar and the user sandbox.
func TestLive(t *testing.T) {
	address, folder, image := os.Getenv("SANDBOXER_LIVE_OPENSHELL"), os.Getenv("SANDBOXER_LIVE_OPENSHELL_TLS"), os.Getenv("SANDBOXER_LIVE_OPENSHELL_IMAGE")
	if address == "" || folder == "" {
		t.Fatal("there is no gateway: set SANDBOXER_LIVE_OPENSHELL to its address, SANDBOXER_LIVE_OPENSHELL_TLS to the folder of its certificates, " +
			"and SANDBOXER_LIVE_OPENSHELL_IMAGE to an image if its default has no user sandbox")
	}
	values := map[string]any{"address": address, "tls_folder": folder}
	if image != "" {
		values["image"] = image
	}
	exttest.Run(t, exttest.Harness{
		New: func(testing.TB) extensions.Extension { return openshell.New() },
		Config: func(t testing.TB) extensions.Config {
			account, err := extensions.NewID(nil)
			must(t, err)
			return extensions.Config{Binding: "ext.openshell", Account: "live/" + string(account), Values: values}
		},
		User:   "sandbox",
		Serial: true,
		Excuse: map[string]string{"errors/each-alternative-opens": "no alternative credentials are declared",
			"inside/workspace-read-only": "only an image that has the files can show it"},
	})
}
