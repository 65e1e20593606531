package composessh

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// One image is built from the workspace and another from the profile's bundle, also when the stack is restored: from the
// files that were judged, and not from what those inside made of them.
func TestARestoredStackIsBuiltFromItsWorkspaceAndItsBundle(t *testing.T) {
	t.Parallel()
	marks := newBuilder(t)
	s := newSite(t)
	b := s.open(t)
	stack := func(opts ...exttest.Option) extensions.Spec {
		return s.spec(t, func(sp *extensions.Spec) {
			sp.Workspace.Source = newFolder(t, map[string]string{"app/Dockerfile": marks.from("") + "COPY from /from\n", "app/from": "workspace"})
			tools := newFolder(t, map[string]string{"app/Dockerfile": marks.from("") + "COPY from /from\n", "app/from": "bundle"})
			sp.Containers = &extensions.Containers{
				Agent: extensions.Container{Image: extensions.Image{Build: &extensions.BuildStage{Context: "app"}}, Command: []string{"sleep", "1000"}},
				Services: map[string]extensions.Container{"tools": {Command: []string{"sleep", "1000"},
					Image: extensions.Image{Bundle: "tools", Build: &extensions.BuildStage{Context: "app"}, BundleSource: tools}}},
			}
			sp.Instructions = "read me"
			for _, o := range opts {
				o(sp)
			}
		})
	}
	h := s.provision(t, b, stack())
	in(t, b, h, extensions.AgentService, "echo changed >app/from; echo mine >f; echo own >/own")
	in(t, b, h, "tools", "echo own >/own")
	for kind, own := range map[extensions.SnapshotKind]string{extensions.SnapshotWorkspace: "", extensions.SnapshotFilesystem: "own"} {
		k := s.keep(t, b, h, kind)
		_, err := b.Teardown(t.Context(), s.provision(t, b, stack(from(k)))) // its images go, and are built again
		must(t, err)
		r := s.provision(t, b, stack(from(k)))
		for service, built := range map[string]string{extensions.AgentService: "workspace", "tools": "bundle"} {
			want := built + own
			if got := in(t, b, r, service, "cat /from; cat /own 2>/dev/null || true"); got != want {
				t.Errorf("%s: the image of %s holds %q, want %q", kind, service, got, want)
			}
		}
		if got := in(t, b, r, extensions.AgentService, "cat app/from f .sandboxer/instructions.md"); got != "changed\nmine\nread me" {
			t.Errorf("%s: the workspace holds %q", kind, got)
		}
	}
}
