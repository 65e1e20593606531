package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/catalog"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestLoginsOfRegistriesAreReadStrictlyAndHoldNoSecret(t *testing.T) {
	t.Parallel()
	runs := extensions.Descriptor{Handler: "runs", Title: "R", Places: []extensions.Place{extensions.PlaceMachine}}
	runs.Capabilities.Provides.RequirementKinds = []string{"image"}
	none := extensions.Descriptor{Handler: "none", Title: "N", Places: []extensions.Place{extensions.PlaceMachine}}
	for text, want := range map[string]string{
		"handler: runs\nregistries: {ghcr.io: {username: bot, password: env://TOKEN}}\n":                                      "",
		"handler: runs\nregistries: {\"registry.example:5000\": {username: bot, password: file:///x}}\n":                      "",
		"handler: none\nregistries: {ghcr.io: {username: bot, password: env://TOKEN}}\n":                                      "pulls no images",
		"handler: runs\nregistries: {ghcr.io: {username: bot, password: s3cr3t-itself}}\n":                                    "not a secret reference",
		"handler: runs\nregistries: {ghcr.io: {password: env://TOKEN}}\n":                                                     "username is required",
		"handler: runs\nregistries: {ghcr.io: {username: bot}}\n":                                                             "not a secret reference",
		"handler: runs\nregistries: {\"https://ghcr.io\": {username: bot, password: env://TOKEN}}\n":                          "is not the host of a registry",
		"handler: runs\nregistries: {ghcr.io/acme: {username: bot, password: env://TOKEN}}\n":                                 "is not the host of a registry",
		"handler: runs\nregistries: {ghcr.io: {username: bot, password: env://TOKEN, token: x}}\n":                            "unknown key",
		"handler: runs\nregistries: {ghcr.io: {username: \"b\\no\", password: env://TOKEN}}\n":                                "username is required",
		"handler: runs\nregistries: {ghcr.io: {username: a, password: env://T}, ghcr.io: {username: a, password: env://T}}\n": "already set",
	} {
		c, err := catalog.Load([]string{folder(t, map[string]string{"extensions/a.yaml": "id: ext.a\n" + text})},
			[]extensions.Extension{described{runs}, described{none}}, time.Now())
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "extensions/a.yaml:") ||
			strings.Contains(err.Error(), "s3cr3t")) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil {
			continue
		}
		if b, _ := c.Binding("ext.a"); len(b.Registries) != 1 {
			t.Errorf("%q: %+v", text, b.Registries)
		}
	}
}
