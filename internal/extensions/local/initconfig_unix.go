//go:build unix

package local

import (
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/initd"
)

func initConfig(spec extensions.Spec, home, path string) initd.Config {
	return initd.Config{ID: string(spec.ID), Home: home, Env: environment(spec, home, path)}
}
