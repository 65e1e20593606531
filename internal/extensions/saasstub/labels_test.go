package saasstub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// The vendor takes no slash in a label and no long one; what an account is called does not matter.
func TestLabelsFitTheVendorWhateverTheAccountIsCalled(t *testing.T) {
	t.Parallel()
	for _, account := range []string{"acme/web", strings.Repeat("a", 63) + "/" + strings.Repeat("b", 63)} {
		cfg := extensions.Config{Binding: "ext.stub", Account: account, Values: map[string]any{"dir": t.TempDir()}}
		b, err := saasstub.New().Open(t.Context(), cfg)
		must(t, err)
		h, _, err := b.Provision(t.Context(), exttest.Spec(t, cfg))
		must(t, err)
		must(t, b.(extensions.GenerationSetter).SetGeneration(t.Context(), h, 7))
		all, err := b.Status(t.Context(), nil)
		must(t, err)
		if len(all) != 1 || all[0].Generation != 7 || all[0].ID != h.ID {
			t.Errorf("%s: %+v", account, all)
		}
	}
	client := vendor.At(t.TempDir()).Client("acme/web", "", 0)
	req := vendor.Request{Name: "n", Deadline: time.Now().Add(time.Hour), Labels: map[string]string{"account": "acme/web"}}
	if _, err := client.Create(t.Context(), req); err == nil {
		t.Error("the vendor took a label with a slash")
	}
}
