package profile_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestARequestOverridesWhatItsProfileAllows(t *testing.T) {
	t.Parallel()
	profiles := set(t,
		"id: profile.open\nversion: 1.0.0\nisolation: {level: container}\nimage: {pull: 'python:3.12'}\nextension: ext.a\n"+
			"route: {fallback: [ext.b]}\nresources: {cpu: 1, memory_mb: 512}\noverrides: [extension, image, resources]",
		"id: profile.heir\nversion: 1.0.0\nextends: profile.open",
		"id: profile.stack\nversion: 1.0.0\nisolation: {level: container}\ncompose: {file: compose.yaml}\noverrides: [image]")
	all := profile.Request{Profile: "profile.open", Image: "node:22", Resources: &profile.Sizes{CPU: "0.5", DiskMB: 100}}
	r, err := profile.Resolve(profiles, all)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Spec; s.Image.Pull != "node:22" || *s.Resources.CPU != 500 || *s.Resources.MemoryMB != 512 || *s.Resources.DiskMB != 100 {
		t.Errorf("%+v, %+v", s.Image, s.Resources)
	}
	plain, err := profile.Resolve(profiles, profile.Request{Profile: "profile.open"})
	if err != nil || plain.Spec.Image.Pull != "python:3.12" || plain.Policy.Extension != "ext.a" || plain.Digest != r.Digest {
		t.Errorf("the profile itself changed: %+v, %v", plain, err)
	}
	for want, asked := range map[extensions.GPU]extensions.GPU{{Model: "H100", Count: 1}: {Model: "H100"}, {Count: 4}: {Count: 4}} {
		r, err := profile.Resolve(profiles, profile.Request{Profile: "profile.open", Resources: &profile.Sizes{GPU: asked}})
		if err != nil || r.Spec.Resources.GPU == nil || *r.Spec.Resources.GPU != want {
			t.Errorf("%+v: %v", asked, err)
		}
	}
	for want, req := range map[string]profile.Request{
		"does not let its requests set image":     {Profile: "profile.heir", Image: "node:22"}, // it is not inherited
		"does not let its requests set resources": {Profile: "profile.heir", Resources: &profile.Sizes{CPU: "1"}},
		"not an image reference":                  {Profile: "profile.open", Image: "a b"},
		"not a number of vCPUs":                   {Profile: "profile.open", Resources: &profile.Sizes{CPU: "x"}},
		"65 is not a count":                       {Profile: "profile.open", Resources: &profile.Sizes{GPU: extensions.GPU{Count: 65}}},
		"is not a model":                          {Profile: "profile.open", Resources: &profile.Sizes{GPU: extensions.GPU{Model: "a/b"}}},
		"memory_mb: -1":                           {Profile: "profile.open", Resources: &profile.Sizes{MemoryMB: -1}},
		"images of their own":                     {Profile: "profile.stack", Image: "node:22"},
		"no input sandbox_id":                     {Profile: "profile.open", Inputs: map[string]any{"sandbox_id": "x"}},
	} {
		_, err := profile.Resolve(profiles, req)
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
