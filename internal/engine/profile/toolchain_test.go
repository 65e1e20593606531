package profile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// tools resolves profile.x of a catalog of profiles and kits, told apart by
// their ids.
func tools(t testing.TB, files ...string) (extensions.Spec, error) {
	t.Helper()
	s := profile.NewSet()
	for i, text := range files {
		name := fmt.Sprintf("%d.yaml", i)
		if strings.HasPrefix(text, "id: kit.") {
			k, err := profile.ParseKit(name, []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			s.AddKit(k)
			continue
		}
		p, err := profile.Parse(name, []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		s.Add(p)
	}
	r, err := profile.Resolve(s, profile.Request{Profile: "profile.x"})
	if err != nil {
		return extensions.Spec{}, err
	}
	return r.Spec, nil
}

func kit(id, version, rest string) string {
	return "id: kit." + id + "\nversion: \"" + version + "\"\ninstall: [\"" + id + " " + version + "\"]\n" + rest
}

func runs(steps []extensions.Step) []string {
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = s.Run
	}
	return out
}

const x = "id: profile.x\nversion: \"1.0.0\"\n"

func TestKitsAreComposed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string
		kits  []string
		runs  []string // of install
	}{
		"as listed": {[]string{x + "toolchain: { kits: [b, a] }", kit("a", "1.0.0", ""), kit("b", "1.0.0", "")},
			[]string{"kit.b@1.0.0", "kit.a@1.0.0"}, []string{"b 1.0.0", "a 1.0.0"}},
		"what is required comes first, once": {[]string{x + "toolchain: { kits: [kit.a, kit.b], install: [own] }",
			kit("a", "1.0.0", "requires: [base]\n"), kit("b", "1.0.0", "requires: [base]\n"), kit("base", "1.0.0", "")},
			[]string{"kit.base@1.0.0", "kit.a@1.0.0", "kit.b@1.0.0"}, []string{"base 1.0.0", "a 1.0.0", "b 1.0.0", "own"}},
		"the highest version": {[]string{x + "toolchain: { kits: [a] }", kit("a", "1.9.0", ""), kit("a", "1.10.0", ""),
			kit("a", "2.0.0-rc.1", "")},
			[]string{"kit.a@1.10.0"}, []string{"a 1.10.0"}},
		"a version that one names holds for all": {[]string{x + "toolchain: { kits: [b, c] }", kit("a", "1.0.0", ""), kit("a", "2.0.0", ""),
			kit("b", "1.0.0", "requires: [a]\n"), kit("c", "1.0.0", "requires: [kit.a@1.0.0]\n")},
			[]string{"kit.a@1.0.0", "kit.b@1.0.0", "kit.c@1.0.0"}, []string{"a 1.0.0", "b 1.0.0", "c 1.0.0"}},
		"an heir adds": {[]string{x + "extends: profile.p\ntoolchain: { kits: [b], install: [own, shared] }",
			"id: profile.p\nversion: \"1.0.0\"\ntoolchain: { kits: [a], install: [shared, theirs] }", kit("a", "1.0.0", ""), kit("b", "1.0.0", "")},
			[]string{"kit.a@1.0.0", "kit.b@1.0.0"}, []string{"a 1.0.0", "b 1.0.0", "shared", "theirs", "own"}},
		"an heir's version counts": {[]string{x + "extends: profile.p\ntoolchain: { kits: [\"a@2.0.0\"] }",
			"id: profile.p\nversion: \"1.0.0\"\ntoolchain: { kits: [\"kit.a@1.0.0\"] }", kit("a", "1.0.0", ""), kit("a", "2.0.0", "")},
			[]string{"kit.a@2.0.0"}, []string{"a 2.0.0"}},
		"an empty list drops": {[]string{x + "extends: profile.p\ntoolchain: { kits: [], install: [] }",
			"id: profile.p\nversion: \"1.0.0\"\ntoolchain: { kits: [a], install: [theirs] }", kit("a", "1.0.0", "")}, nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := tools(t, c.files...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.kits, spec.Toolchain.Kits); diff != "" {
				t.Errorf("kits -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.runs, runs(spec.Toolchain.Install)); diff != "" {
				t.Errorf("install -want +got:\n%s", diff)
			}
		})
	}
}

func TestATimeoutStaysWithItsCommand(t *testing.T) {
	t.Parallel()
	spec, err := tools(t, x+"toolchain: { kits: [a], post_acquire: [{ run: shared, timeout: 10s }, last] }",
		"id: kit.a\nversion: \"1.0.0\"\npost_acquire: [{ run: first, timeout: 1m }, shared]\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []extensions.Step{{Run: "first", Timeout: extensions.Duration(time.Minute)},
		{Run: "shared", Timeout: extensions.Duration(10 * time.Second)}, {Run: "last"}}
	if diff := cmp.Diff(want, spec.Toolchain.PostAcquire); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatAKitProvidesIsAskedOfNoPlace(t *testing.T) {
	t.Parallel()
	spec, err := tools(t, x+"toolchain: { kits: [a], env: { B: mine } }\nrequires: { capabilities: [git, \"toolchain:go\", "+
		"\"toolchain:node\"] }", kit("a", "1.0.0", "requires: [b]\nprovides: [\"toolchain:go\"]\nenv: { A: a, B: theirs }\n"),
		kit("b", "1.0.0", "env: { B: else }\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"git", "toolchain:node"}, spec.Requires.Capabilities); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"A": "a", "B": "mine"}, spec.Toolchain.Env); diff != "" {
		t.Errorf("env -want +got:\n%s", diff)
	}
}

func TestKitsThatCannotBePutTogetherAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string
		says  string
	}{
		"unknown": {[]string{x + "toolchain: { kits: [nod] }", kit("node", "1.0.0", "")}, `there is no kit "kit.nod"; did you mean kit.node?`},
		"version": {[]string{x + "toolchain: { kits: [\"kit.node@3.0.0\"] }", kit("node", "1.0.0", "")}, `kit.node has no version "3.0.0"`},
		"required": {[]string{x + "toolchain: { kits: [a] }", kit("a", "1.0.0", "requires: [bb]\n"), kit("b", "1.0.0", "")},
			`did you mean kit.b?`},
		"cycle": {[]string{x + "toolchain: { kits: [a] }", kit("a", "1.0.0", "requires: [b]\n"), kit("b", "1.0.0", "requires: [a]\n")},
			"requires forms a cycle: kit.a@1.0.0 -> kit.b@1.0.0 -> kit.a@1.0.0"},
		"itself": {[]string{x + "toolchain: { kits: [a] }", kit("a", "1.0.0", "requires: [a]\n")}, "kit.a@1.0.0 -> kit.a@1.0.0"},
		"versions": {[]string{x + "toolchain: { kits: [\"a@1.0.0\", b] }", kit("a", "1.0.0", ""), kit("a", "2.0.0", ""),
			kit("b", "1.0.0", "requires: [\"kit.a@2.0.0\"]\n")}, "profile.x@1.0.0 wants kit.a@1.0.0 and kit.b@1.0.0 wants kit.a@2.0.0"},
		"variables": {[]string{x + "toolchain: { kits: [a, b] }", kit("a", "1.0.0", "env: { V: \"1\" }\n"),
			kit("b", "1.0.0", "env: { V: \"2\" }\n")}, "kit.a@1.0.0 and kit.b@1.0.0 set V to different values"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tools(t, c.files...)
			if text := fmt.Sprint(err, "; ", extensions.RemedyOf(err)); !extensions.IsKind(err, extensions.KindInvalid) ||
				!strings.Contains(text, c.says) {
				t.Errorf("%s does not say %q", text, c.says)
			}
		})
	}
}

// The order is topological, complete, each kit and command once, and stable:
// kits that nothing orders stay as they are listed.
func TestTheOrderOfKitsProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(r, "kits")
		names := rapid.Permutation([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}).Draw(r, "names")[:n]
		needs := map[string][]string{}
		var files []string
		for i, id := range names {
			for _, other := range names[:i] { // no cycle
				if rapid.Bool().Draw(r, id+other) {
					needs[id] = append(needs[id], other)
				}
			}
			files = append(files, kit(id, "1.0.0", "requires: ["+strings.Join(needs[id], ", ")+"]\n"))
		}
		roots := rapid.Permutation(names).Draw(r, "roots")[:rapid.IntRange(1, n).Draw(r, "number")]
		files = append(files, x+"toolchain: { kits: ["+strings.Join(roots, ", ")+"] }")
		spec, err := tools(t, files...)
		if err != nil {
			r.Fatal(err)
		}
		at := map[string]int{}
		for i, ref := range spec.Toolchain.Kits {
			id := strings.TrimSuffix(strings.TrimPrefix(ref, "kit."), "@1.0.0")
			if _, twice := at[id]; twice {
				r.Fatalf("%s is there twice: %v", id, spec.Toolchain.Kits)
			}
			at[id] = i
		}
		wanted := map[string]bool{}
		var want func(id string)
		want = func(id string) {
			wanted[id] = true
			for _, other := range needs[id] {
				want(other)
			}
		}
		for _, id := range roots {
			want(id)
		}
		if len(at) != len(wanted) || len(spec.Toolchain.Install) != len(wanted) {
			r.Fatalf("%v of %v, %v", spec.Toolchain.Kits, wanted, runs(spec.Toolchain.Install))
		}
		for id := range wanted {
			for _, other := range needs[id] {
				if at[other] > at[id] {
					r.Fatalf("%s comes after %s: %v", other, id, spec.Toolchain.Kits)
				}
			}
		}
		again, err := tools(t, slices.Concat(files[len(files)-1:], files[:len(files)-1])...)
		if err != nil || !slices.Equal(again.Toolchain.Kits, spec.Toolchain.Kits) || again.Hash() != spec.Hash() {
			r.Fatalf("in another order of files: %v, %v, %v", again.Toolchain.Kits, spec.Toolchain.Kits, err)
		}
	})
}
