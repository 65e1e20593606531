package compose

import (
	"bytes"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// A stack that is loaded from what was kept of its files is rendered as before; files that it did not need are gone.
func TestAStackIsTheSameFromItsIndex(t *testing.T) {
	t.Parallel()
	load := func(src extensions.WorkspaceSource) *Project {
		p, err := Load(t.Context(), Input{Source: src, Files: []string{"compose.yaml"}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := load(files{
		"compose.yaml": "include: [more.yaml]\nservices:\n  web:\n    build: ./app\n    env_file: [web.env]\n    volumes: ['./data/f:/f', './new:/n']\n",
		"more.yaml":    "services: {db: {image: 'busybox:1'}}\n", "web.env": "A=b\n", "data/f": "bound",
		"app/Dockerfile": "FROM busybox:1\nCOPY . /\n", "app/big": "content that counts", "other": "not needed",
	})
	opts := shopOptions()
	opts.ID, opts.Network, opts.Service = "sbx-aaaaaaaaaaaaaaaaaaaa", NetworkDeny, "web"
	one := render(t, first, opts)
	index := first.Bundle.Index()
	if len(index) == 0 || bytes.Contains(index, []byte("other")) {
		t.Fatalf("the index is %s", index)
	}
	second := load(Indexed(index))
	two := render(t, second, opts)
	if !bytes.Equal(one.Model, two.Model) || !bytes.Equal(asJSON(t, one), asJSON(t, two)) {
		t.Errorf("from the index it is\n%s\nnot\n%s", two.Model, one.Model)
	}
	if again := second.Bundle.Index(); len(again) != len(index) {
		t.Errorf("the index of what came from an index has %d bytes, not %d", len(again), len(index))
	}
}
