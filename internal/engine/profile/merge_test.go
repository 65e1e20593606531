package profile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

// set parses profiles into a set; each text is one file.
func set(t testing.TB, texts ...string) *profile.Set {
	t.Helper()
	s := profile.NewSet()
	for _, text := range texts {
		p, err := profile.Parse("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s.Add(p)
	}
	return s
}

func flatten(t testing.TB, s *profile.Set, ref string) *profile.Profile {
	t.Helper()
	p, err := s.Lookup(ref)
	if err != nil {
		t.Fatal(err)
	}
	flat, _, err := s.Flatten(p)
	if err != nil {
		t.Fatal(err)
	}
	return flat
}

const head = "id: profile.child\nversion: \"1.0.0\"\nextends: profile.parent\n"
const parentHead = "id: profile.parent\nversion: \"2.0.0\"\n"

// TestMergeRules states each rule of the package comment as two profiles and
// the one that says the same without extends.
func TestMergeRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, parent, child, want string }{
		{"scalars override", "isolation: {level: process}\nscope_default: agent", "isolation: {level: container}",
			"isolation: {level: container}\nscope_default: agent"},
		{"null is as the parent has it", "ttl: {default: 2h, max: 4h, idle_reap: 1h}", "ttl: {default: 1h, idle_reap: null}",
			"ttl: {default: 1h, max: 4h, idle_reap: 1h}"},
		{"false overrides true", "resources: {best_effort: true}", "resources: {best_effort: false}", "resources: {best_effort: false}"},
		{"an empty text overrides", "setup: {instructions: do it}", `setup: {instructions: ""}`, `setup: {instructions: ""}`},
		{"lists replace", `network: {egress: ["a.org:1"]}`, `network: {egress: ["b.org:2"]}`, `network: {egress: ["b.org:2"]}`},
		{"an empty list replaces", "toolchain: {install: [a]}", "toolchain: {install: []}", "toolchain: {install: []}"},
		{"maps merge", "toolchain: {env: {A: a, B: b}}", "toolchain: {env: {B: c, C: d}}", "toolchain: {env: {A: a, B: c, C: d}}"},
		{"a variable's own name is the parent's", `toolchain: {env: {P: "${P}:a$$", Q: "${Z}", R: r}}`,
			`toolchain: {env: {P: "b$$:${P}${Q}", Q: "${Y}", R: "${Q}"}}`, `toolchain: {env: {P: "b$$:${P}:a$$${Q}", Q: "${Y}", R: "${Q}"}}`},
		{"sections in maps merge", "inputs: {repo: {type: string, doc: old}}", "inputs: {repo: {required: true, doc: new}, n: {type: number}}",
			"inputs: {repo: {type: string, required: true, doc: new}, n: {type: number}}"},
		{"options merge at every depth", "options: {ext.a: {x: {p: 1, q: 2}, y: [1]}}", "options: {ext.a: {x: {q: 3}, y: [2]}, ext.b: {z: 1}}",
			"options: {ext.a: {x: {p: 1, q: 3}, y: [2]}, ext.b: {z: 1}}"},
		{"compose replaces image", "image: {pull: a}", "compose: {file: c.yaml}", "compose: {file: c.yaml}"},
		{"containers replace compose", "compose: {file: c.yaml}", "containers: {agent: {image: {pull: a}}}",
			"containers: {agent: {image: {pull: a}}}"},
		{"build replaces pull", "image: {pull: a, keep: true}", "image: {build: {context: .}}", "image: {build: {context: .}, keep: true}"},
		{"the same alternative merges", "image: {build: {context: ., target: t}}", "image: {build: {target: u}}",
			"image: {build: {context: ., target: u}}"},
		{"http replaces command", "readiness: {command: [a], timeout: 5s}", `readiness: {http: "http://localhost:1/"}`,
			`readiness: {http: "http://localhost:1/", timeout: 5s}`},
		{"allow drops inherited egress", `network: {default: deny, egress: ["a.org:1"]}`, "network: {default: allow}",
			"network: {default: allow}"},
		{"a gpu is one value", "resources: {gpu: {model: H100, count: 2}}", "resources: {gpu: 1}", "resources: {gpu: 1}"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got := flatten(t, set(t, parentHead+c.parent, head+c.child), "profile.child")
			want := flatten(t, set(t, "id: profile.child\nversion: \"1.0.0\"\n"+c.want), "profile.child")
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(profile.Profile{}),
				cmpopts.IgnoreFields(profile.Profile{}, "Extends")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestMergeChangesNeitherSide: sets are read by many resolutions at once.
func TestMergeChangesNeitherSide(t *testing.T) {
	t.Parallel()
	parent := parentHead + "network: {default: deny, egress: [\"a.org:1\"]}\ntoolchain: {env: {A: a}}\noptions: {ext.a: {x: {p: " +
		"1}}}\ninputs: {repo: {type: string}}\n"
	s := set(t, parent, head+"network: {default: allow}\ntoolchain: {env: {B: b}}\noptions: {ext.a: {x: {q: 1}}}\ninputs: {repo: {doc: d}}\n")
	flatten(t, s, "profile.child")
	got, err := s.Lookup("profile.parent")
	if err != nil {
		t.Fatal(err)
	}
	want, err := profile.Parse("p.yaml", []byte(parent))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(profile.Profile{})); diff != "" {
		t.Errorf("the parent changed (-want +got):\n%s", diff)
	}
}

// genBody draws a valid body out of lines that do not contradict each other
// whatever the selection.
func genBody(t *rapid.T, label string) string {
	body := ""
	for i, choices := range [][]string{
		{"", "isolation: {level: process}\n", "isolation: {level: vm}\n"},
		{"", "ttl: {default: 1h}\n", "ttl: {max: 2h}\n", "ttl: {default: 30m, max: 1h}\n"},
		{"", "image: {pull: a}\n", "image: {build: {context: .}}\n", "compose: {file: [a.yaml, b.yaml]}\n",
			"containers: {agent: {image: {pull: a}}}\n"},
		{"", "toolchain: {env: {A: a}, install: [x]}\n", "toolchain: {env: {B: b}, install: []}\n"},
		{"", "network: {default: deny, egress: [\"a.org:1\"]}\n", "network: {default: allow}\n"},
		{"", "readiness: {tcp: \"localhost:1\"}\n", "readiness: {command: [a]}\n"},
		{"", "options: {ext.a: {x: 1}}\n", "options: {ext.a: {y: [1]}, ext.b: {}}\n"},
		{"", "resources: {cpu: 0.5, memory_mb: 1}\n", "resources: {memory_mb: 2, gpu: H100}\n"},
	} {
		body += rapid.SampledFrom(choices).Draw(t, label+string(rune('a'+i)))
	}
	return body
}

func TestMergeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		parent, child := genBody(r, "parent"), genBody(r, "child")
		same := func(what, parent, child, alone string) {
			got := flatten(t, set(t, parentHead+parent, head+child), "profile.child")
			want := flatten(t, set(t, "id: profile.child\nversion: \"1.0.0\"\n"+alone), "profile.child")
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(profile.Profile{}),
				cmpopts.IgnoreFields(profile.Profile{}, "Extends")); diff != "" {
				r.Fatalf("%s (-want +got):\n%s", what, diff)
			}
		}
		same("a child that says nothing is its parent", parent, "", parent)
		same("a parent that says nothing is not noticed", "", child, child)
		same("saying it again changes nothing", parent, parent, parent)
		flatten(t, set(t, parentHead+parent, head+child), "profile.child") // never contradicts itself
	})
}
