package docker

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

func TestAnAnswerThatFailsIsNoEndOfASandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.become(t, b, exttest.Spec(t, s.config, exttest.With(func(spec *extensions.Spec) {
		image := extensions.Image{Pull: here.image(t)}
		spec.Network.Default = extensions.NetworkAllow
		spec.Containers = &extensions.Containers{Agent: extensions.Container{Image: image},
			Services: map[string]extensions.Container{"once": {Image: image, Command: []string{"true"}}}}
	})))
	for _, service := range []string{"once", extensions.AgentService} {
		found, err := b.look(t.Context(), h.ID)
		must(t, err)
		c, _ := found.service(service)
		if service == extensions.AgentService {
			docker(t, "kill", c.ID)
		} else {
			docker(t, "wait", c.ID) // only what has ended is asked how
		}
		for _, handles := range [][]extensions.Handle{{h}, nil} {
			s.gate.answerInstead("/containers/"+c.ID+"/json", serverError("busy"))
			o, err := b.Status(t.Context(), handles)
			if must(t, err); len(o) != 1 || o[0].Phase != extensions.PhaseUnreachable || o[0].Err == nil || o[0].Reason == "" {
				t.Errorf("%s: %+v", service, o)
			}
			o, err = b.Status(t.Context(), handles)
			want := map[string]extensions.Phase{"once": extensions.PhaseReady, extensions.AgentService: extensions.PhaseFailed}[service]
			if must(t, err); len(o) != 1 || o[0].Phase != want {
				t.Errorf("%s: asked again: %+v", service, o)
			}
		}
	}
}
