package composessh

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestWhatIsLeftOutOfAStackIsNotedAtPlan(t *testing.T) {
	t.Parallel()
	host := &extensions.Host{Name: "h", SSH: &extensions.SSH{Address: "127.0.0.1", User: "u"}}
	spec := func(file string) extensions.Spec {
		return extensions.Spec{Network: extensions.Network{Default: "deny"}, Compose: &extensions.Compose{Files: []string{"compose.yaml"}},
			Workspace: extensions.Workspace{Source: newFolder(t, map[string]string{"compose.yaml": file})}}
	}
	const both = "services:\n  web: {image: x, restart: always, ports: ['8080:80']}\n  db: {image: x, restart: on-failure}\n"
	for name, c := range map[string]struct {
		spec func() extensions.Spec
		want []string
	}{
		"both": {func() extensions.Spec { return spec(both) },
			[]string{"restart policies of db, web are dropped", "ports of web (80) are not published"}},
		"neither":  {func() extensions.Spec { return spec("services: {web: {image: x, restart: 'no'}}\n") }, nil},
		"no files": {func() extensions.Spec { s := spec(both); s.Workspace.Source = nil; return s }, nil},
		"allowed": {func() extensions.Spec {
			s := spec(both)
			s.Network.Default = "allow"
			return s
		}, []string{"restart policies"}},
		"by choice": {func() extensions.Spec {
			s := spec(both)
			s.Options = map[string]any{"publish": publishNone}
			return s
		}, []string{"restart policies"}},
	} {
		notes, err := New().(extensions.SpecChecker).CheckSpec(t.Context(), extensions.Config{Binding: "ext.compose-ssh", Host: host}, c.spec())
		if err != nil || len(notes) != len(c.want) {
			t.Errorf("%s: %q, %v", name, notes, err)
			continue
		}
		for i := range c.want {
			if !strings.HasPrefix(notes[i], c.want[i]) {
				t.Errorf("%s: %q, want %q", name, notes[i], c.want[i])
			}
		}
	}
}
