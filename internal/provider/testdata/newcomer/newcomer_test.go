package newcomer_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/newcomer"
)

func TestConformance(t *testing.T) {
	exttest.Run(t, exttest.Harness{
		New: func(testing.TB) extensions.Extension { return newcomer.New() },
		Config: func(t testing.TB) extensions.Config {
			return extensions.Config{Binding: "ext.newcomer", Account: "acme/web", StateDir: t.TempDir()}
		},
		Residue: func(t testing.TB, cfg extensions.Config) []string {
			files, err := filepath.Glob(filepath.Join(cfg.StateDir, "newcomer", "*"))
			if err != nil {
				t.Fatal(err)
			}
			return files
		},
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) {
			if err := os.Remove(filepath.Join(cfg.StateDir, "newcomer", h.Ref+".json")); err != nil {
				t.Fatal(err)
			}
		},
	})
}
