package profile_test

import (
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const filled = `
id: profile.filled
version: "1.0.0"
compose:
  file: ["{{input.a}}.yaml"]
  service: "{{input.b}}"
  profiles: ["{{input.b}}"]
  env_files: ["env/{{ input.b }}"]
  variables: { A: "{{input.a}}", BOTH: "<{{input.a}}|{{input.b}}>", LIT: "{{{{input.a}}", N: "{{input.n}}", L: "{{input.l}}", M: "{{input.m}}", T: "{{input.t}}" }
setup: { instructions: "use {{input.a}}, not {{ .Values.x }} or ${{ env.a }}" }
toolchain: { env: { A: "${PATH}:{{input.a}}" } }
readiness: { command: [test, "{{input.a}}"], service: "{{input.b}}" }
inputs:
  a: { type: string, doc: "Put where {{input.a}} stands." }
  b: { type: string, default: web }
  n: { type: number, default: 1.5 }
  l: { type: list, default: [a, 1, "<"] }
  m: { type: map, default: { k: v } }
  t: { type: bool, default: true }
`

func TestInputsArePutIn(t *testing.T) {
	t.Parallel()
	got, err := profile.Resolve(set(t, filled), profile.Request{Profile: "profile.filled", Inputs: map[string]any{"a": "x$y"}})
	if err != nil {
		t.Fatal(err)
	}
	s := got.Spec
	want := &extensions.Compose{Files: []string{"x$y.yaml"}, Service: "web", Profiles: []string{"web"}, EnvFiles: []string{"env/web"},
		Variables: map[string]string{"A": "x$y", "BOTH": "<x$y|web>", "LIT": "{{input.a}}", "N": "1.5", "L": `["a",1,"<"]`, "M": `{"k":"v"}`,
			"T": "true"}}
	if diff := cmp.Diff(want, s.Compose); diff != "" {
		t.Errorf("compose (-want +got):\n%s", diff)
	}
	if want := "use x$y, not {{ .Values.x }} or ${{ env.a }}"; s.Instructions != want {
		t.Errorf("instructions %q, want %q", s.Instructions, want)
	}
	if want := `''"${PATH-}"':x''$''y'`; s.Toolchain.EnvInside["A"] != want {
		t.Errorf("toolchain.env A is %q, want %q", s.Toolchain.EnvInside["A"], want)
	}
	if want := []string{"test", "x$y"}; !reflect.DeepEqual(s.Readiness.Command, want) || s.Readiness.Service != "web" {
		t.Errorf("readiness %+v", s.Readiness)
	}
}

// What a value says changes the request's hash and not the profile's digest.
func TestAnInputIsPartOfTheHash(t *testing.T) {
	t.Parallel()
	s := set(t, filled)
	of := func(a string) *profile.Resolved {
		r, err := profile.Resolve(s, profile.Request{Profile: "profile.filled", Inputs: map[string]any{"a": a}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	one, other := of("one"), of("other")
	if one.Spec.Hash() == other.Spec.Hash() || one.Digest != other.Digest {
		t.Errorf("hashes %s and %s, digests %s and %s", one.Spec.Hash(), other.Spec.Hash(), one.Digest, other.Digest)
	}
}

func TestInputsArePoliced(t *testing.T) {
	t.Parallel()
	const p = `
id: profile.p
version: "1.0.0"
image: { build: { context: "{{input.context}}", dockerfile: "{{input.file}}", args: { X: "{{input.arg}}" } } }
readiness: { command: [run, "{{input.arg}}"] }
toolchain: { env: { Y: "{{input.arg}}" } }
inputs:
  context: { type: string, default: . }
  file: { type: string, default: Dockerfile }
  arg: { type: string, default: x }
  used: { type: string }
setup: { instructions: "{{input.used}}" }
`
	for name, c := range map[string]struct {
		inputs      map[string]any
		want, field string
	}{
		"a path outside": {map[string]any{"file": "../x", "used": ""},
			"image.build.dockerfile of profile.p@1.0.0, filled from inputs.file: the dockerfile \"../x\" leaves its folder", "inputs.file"},
		"two lines": {map[string]any{"context": "a\nb", "used": ""}, "has a line break", "inputs.context"},
		"nothing":   {map[string]any{"context": "", "used": ""}, "the build context is empty", "inputs.context"},
		"no value":  {map[string]any{}, "setup.instructions uses the input used of profile.p@1.0.0, which has no value", "inputs"},
		"too much": {map[string]any{"used": strings.Repeat("x", 65_000), "arg": strings.Repeat("x", 65_537)}, "at most 65536",
			"inputs.arg"},
		"too much inserted": {map[string]any{"used": "", "arg": strings.Repeat("$", 40_000)}, "the value of Y has 80000 bytes; at most 65536",
			""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := profile.Resolve(set(t, p), profile.Request{Profile: "profile.p", Inputs: c.inputs})
			if err == nil || !strings.Contains(err.Error(), c.want) || extensions.FieldOf(err) != c.field ||
				!extensions.IsKind(err, extensions.KindInvalid) {
				t.Errorf("%v at %q, want %q at %q", err, extensions.FieldOf(err), c.want, c.field)
			}
		})
	}
}

// hostile are pieces of what a value could be taken for.
var hostile = []string{"{{input.a}}", "{{input.b}}", "{{{{input.a}}", "}}", "{{", "$", "${PATH}", "$$", "'", `"`, `\`, "\n", "\t", ": ",
	"- ", "#", "&a", "*a", "!!int", "é", "x", "&", "<", "`id`", "$(id)"}

type anyText string

func (anyText) Generate(r *rand.Rand, size int) reflect.Value {
	var b strings.Builder
	for range r.Intn(size + 1) {
		b.WriteString(hostile[r.Intn(len(hostile))])
	}
	return reflect.ValueOf(anyText(b.String()))
}

// Whatever a value is, it is the one text of its fields, and the rest of the
// spec is as with any other.
func TestAValueStaysInItsField(t *testing.T) {
	t.Parallel()
	s := set(t, `
id: profile.p
version: "1.0.0"
containers:
  agent: { image: { pull: "python:3.12" }, command: [run, "{{input.a}}", "-{{input.a}}-"], environment: { A: "{{input.a}}", B: "{{input.b}}" } }
toolchain: { env: { T: "{{input.a}}" } }
setup: { instructions: "{{input.a}}" }
inputs: { a: { type: string }, b: { type: string } }
`)
	resolve := func(a, b string) extensions.Spec {
		r, err := profile.Resolve(s, profile.Request{Profile: "profile.p", Inputs: map[string]any{"a": a, "b": b}})
		if err != nil {
			t.Fatalf("%q: %v", a, err)
		}
		return r.Spec
	}
	plain := resolve("plain", "b")
	if err := quick.Check(func(v anyText) bool {
		got, a := resolve(string(v), "b"), string(v)
		want := plain
		agent := want.Containers.Agent
		agent.Command, agent.Environment = []string{"run", a, "-" + a + "-"}, map[string]string{"A": a, "B": "b"}
		want.Containers = &extensions.Containers{Agent: agent}
		want.Toolchain.Env = map[string]string{"T": a}
		want.Instructions, want.Inputs = a, map[string]any{"a": a, "b": "b"}
		return cmp.Equal(want, got)
	}, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}
