package compose

import (
	"maps"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"pgregory.net/rapid"
)

// nasty is text that YAML, JSON, Compose or a shell could read as something
// other than text.
func nasty() *rapid.Generator[string] {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"$", "$$", "$$$", "${", "}", "${X}", "${SBX_SECRET_0}", "$SBX_WORKSPACE", "${SBX_NET_0:-x}", "$(id)", "`", "'", "\"", "\\", "\\u0000",
			"\n", "\r\n", "\t", " ", ":", ": ", "#", " #", "-", "- ", "!", "!!int", "&a", "*a", "<<", "%", "@", "|", ">", "{{.ID}}", "null", "~",
			"yes", "0x1F", "1e3",
			"é", "\u0085", "\u00a0", "\u2028", "\u2029", "\ufeff", "\u202e", "\U0001f600", "\U0010ffff", "\x01", "\x1b[31m", "\x7f", "\u0090",
			"\ufffe", "\uffff",
			"SBX_WORKSPACE", "x-", "\\n",
		}),
		rapid.StringN(0, 8, -1),
		rapid.Map(rapid.IntRange(1, 0x2fff), func(n int) string { return string(rune(n)) }),
	)
	return rapid.Map(rapid.SliceOfN(piece, 0, 6), func(parts []string) string {
		out := []rune{}
		for _, p := range parts {
			for _, c := range p {
				if c != 0 && c != '\ufffd' {
					out = append(out, c)
				}
			}
		}
		return string(out)
	})
}

func name() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_.$-]{0,10}`) }

// A rendered model, read again as Compose reads it, says what the policed
// project said, whatever the texts are.
func TestRenderRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		env := rapid.MapOfN(name(), nasty(), 0, 4).Draw(t, "environment")
		labels := rapid.MapOfN(name(), nasty(), 0, 3).Draw(t, "labels")
		own := rapid.MapOfN(name(), nasty(), 0, 3).Draw(t, "spec env")
		command := rapid.SliceOfN(nasty(), 1, 4).Draw(t, "command")
		test := rapid.SliceOfN(nasty(), 1, 3).Draw(t, "healthcheck")
		content := rapid.Map(nasty(), func(s string) string { return "x" + s }).Draw(t, "content")
		secret := nasty().Draw(t, "secret")
		s := types.ServiceConfig{Name: "web"}
		s.Labels = labels
		s.Image, s.User, s.WorkingDir = "img", nasty().Draw(t, "user"), "/w"+nasty().Draw(t, "dir")
		s.Command, s.Entrypoint = command, rapid.SliceOfN(nasty(), 0, 2).Draw(t, "entrypoint")
		s.HealthCheck = &types.HealthCheckConfig{Test: append([]string{"CMD"}, test...)}
		s.Environment = types.MappingWithEquals{"GONE": nil, "TOKEN": nil}
		for k, v := range env {
			s.Environment[k] = &v
		}
		s.Configs = []types.ServiceConfigObjConfig{{Source: "c", Target: "/c"}}
		p := &Project{Root: testRoot, Compose: &types.Project{
			Services: types.Services{"web": s}, Configs: types.Configs{"c": {Content: content}},
		}}
		r, err := p.Render(withDefaults(RenderOptions{Env: own, SecretNames: []string{"TOKEN"}, Mount: "/w s$p", Network: NetworkAllow}))
		if err != nil {
			t.Fatalf("render: %v", err)
		}
		back, err := reloaded(r, types.Mapping{"SBX_SECRET_0": secret, "X": "leaked", "GONE": "leaked", "TOKEN": "leaked", "a": "leaked"})
		if err != nil {
			t.Fatalf("reload: %v\n%s", err, r.Model)
		}
		got := back.Services["web"]
		want := maps.Clone(env)
		maps.Copy(want, own)
		want["TOKEN"] = secret
		if _, ok := want["GONE"]; !ok && got.Environment["GONE"] != nil {
			t.Fatal("a variable came from the host")
		}
		have := map[string]string{}
		for k, v := range got.Environment {
			have[k] = *v
		}
		if !maps.Equal(have, want) {
			t.Fatalf("environment %q, want %q", have, want)
		}
		for k, v := range labels {
			if got.Labels[k] != v {
				t.Fatalf("label %q is %q, want %q", k, got.Labels[k], v)
			}
		}
		if !slices.Equal(got.Command, s.Command) || !slices.Equal(got.Entrypoint, s.Entrypoint) ||
			!slices.Equal(got.HealthCheck.Test, s.HealthCheck.Test) {
			t.Fatalf("command %q entrypoint %q test %q, want %q %q %q", got.Command, got.Entrypoint, got.HealthCheck.Test, s.Command, s.Entrypoint,
				s.HealthCheck.Test)
		}
		if got.User != s.User || got.WorkingDir != s.WorkingDir || back.Configs["c"].Content != content {
			t.Fatalf("user %q dir %q content %q, want %q %q %q", got.User, got.WorkingDir, back.Configs["c"].Content, s.User, s.WorkingDir, content)
		}
		if m := got.Volumes[0]; m.Source != "/host/ws" || m.Target != "/w s$p" {
			t.Fatalf("the workspace is mounted from %q at %q", m.Source, m.Target)
		}
		if got := back.Networks["default"].Ipam.Config[0].Subnet; got != "10.0.0.0/28" {
			t.Fatalf("subnet %q", got)
		}
	})
}

// Text that no container can be given is refused, not changed.
func TestRenderRefusesTextThatCannotBeGiven(t *testing.T) {
	t.Parallel()
	for what, text := range map[string]string{
		"NUL": "a\x00b", "a forged placeholder": "\x00SBX_WORKSPACE\x00", "a forged secret": "\x00SBX_SECRET_7\x00", "bytes": "a\xffb",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := parse(t, "services: {web: {image: i}}", nil)
			refuse(t, p, RenderOptions{Env: map[string]string{"A": text}}, "invalid")
			refuse(t, p, RenderOptions{Env: map[string]string{text: "A"}}, "invalid")
		})
	}
}
