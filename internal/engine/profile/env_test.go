package profile_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func envKit(id, env string) string {
	return "id: kit." + id + "\nversion: \"1.0.0\"\nenv: { " + env + " }\n"
}

// expanded is what a shell makes of the words in a sandbox that has these
// variables.
func expanded(t *testing.T, words map[string]string, has ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, word := range words {
		cmd := exec.Command("/bin/sh", "-c", "printf %s "+word)
		cmd.Env = has
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %s: %v", name, word, err)
		}
		out[name] = string(text)
	}
	return out
}

func TestVariablesAreJoinedInTheOrderOfComposition(t *testing.T) {
	t.Parallel()
	kits := func(list, env string) string {
		return x + "toolchain: { kits: [" + list + "], env: { " + env + " } }\n"
	}
	for name, c := range map[string]struct {
		files       []string
		env, inside map[string]string
	}{
		"two kits and the profile": {[]string{kits("a, b", `PATH: "${PATH}:/own"`), envKit("a", `PATH: "${PATH}:/a"`),
			envKit("b", `PATH: "/b:${PATH}"`)},
			nil, map[string]string{"PATH": "/b:/bin:/a:/own"}},
		"what is required comes first": {[]string{kits("a", ""), envKit("a", `PATH: "${PATH}:/a"`) + "requires: [b]\n",
			envKit("b", `PATH: "${PATH}:/b"`)},
			nil, map[string]string{"PATH": "/bin:/b:/a"}},
		"what a kit has set": {[]string{kits("a, b", ""), envKit("a", "V: one"), envKit("b", `V: "${V},two"`)},
			map[string]string{"V": "one,two"}, nil},
		"set to nothing": {[]string{kits("a, b", ""), envKit("a", `PATH: ""`), envKit("b", `PATH: "${PATH}/b"`)},
			map[string]string{"PATH": "/b"}, nil},
		"another one of the file": {[]string{kits("a", `A: "${B}", B: "${C}!", C: "${V}"`),
			envKit("a", `PATH: "${ROOT}/bin:${PATH}", ROOT: /go, V: v`)},
			map[string]string{"ROOT": "/go", "V": "v", "A": "v!", "B": "v!", "C": "v"}, map[string]string{"PATH": "/go/bin:/bin"}},
		"one that a later kit sets": {[]string{kits("a, b", ""), envKit("a", `A: "${HOME}"`), envKit("b", "HOME: /b")},
			nil, map[string]string{"A": "/root", "HOME": "/b"}},
		"the profile decides": {[]string{kits("a, b", `V: "3"`), envKit("a", `V: "1"`), envKit("b", `V: "2"`)},
			map[string]string{"V": "3"}, nil},
		"the profile's text": {[]string{kits("a", "PATH: /only"), envKit("a", `PATH: "${PATH}:/a"`)},
			map[string]string{"PATH": "/only"}, nil},
		"the same twice": {[]string{kits("a, b", ""), envKit("a", `H: "${HOME}/x"`), envKit("b", `H: "${HOME}/x"`)},
			nil, map[string]string{"H": "/root/x"}},
		"a dollar sign": {[]string{kits("", `A: "$$$${HOME}$$", B: "$$HOME${HOME}$$"`)},
			map[string]string{"A": "$${HOME}$"}, map[string]string{"B": "$HOME/root$"}},
		"what a shell would read": {[]string{kits("", `Q: "it's $$(id) `+"`id`"+` \\ \" * ~ ; & ${SPACED}|${UNSET}"`)},
			nil, map[string]string{"Q": "it's $(id) `id` \\ \" * ~ ; & a  b '*' $(id)|"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := tools(t, c.files...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.env, spec.Toolchain.Env); diff != "" {
				t.Errorf("for every program: -want +got:\n%s", diff)
			}
			got := expanded(t, spec.Toolchain.EnvInside, "PATH=/bin", "HOME=/root", "SPACED=a  b '*' $(id)")
			if len(c.inside) > 0 || len(got) > 0 {
				if diff := cmp.Diff(c.inside, got); diff != "" {
					t.Errorf("inside: -want +got:\n%s", diff)
				}
			}
		})
	}
}

func TestAChildAddsToItsParentsVariable(t *testing.T) {
	t.Parallel()
	spec, err := tools(t, "id: profile.x\nversion: \"1.0.0\"\nextends: profile.y\ntoolchain: { env: { PATH: \"${PATH}:/x:$$\", B: \"${A}\", "+
		"D: d } }\n",
		"id: profile.y\nversion: \"1.0.0\"\nextends: profile.z\ntoolchain: { env: { PATH: \"/y:${PATH}\", A: \"$$y\" } }\n",
		"id: profile.z\nversion: \"1.0.0\"\ntoolchain: { kits: [k], env: { PATH: \"${PATH}:/z:$$\" , D: \"${A}\" } }\n",
		envKit("k", `PATH: "/k:${PATH}"`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"A": "$y", "B": "$y", "D": "d"}, spec.Toolchain.Env); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := expanded(t, spec.Toolchain.EnvInside, "PATH=/bin")["PATH"]; got != "/y:/k:/bin:/z:$:/x:$" {
		t.Errorf("PATH is %q", got)
	}
}

func TestMalformedReferencesAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	for value, says := range map[string]string{
		"$HOME/bin":  `the value of B: "$HOME/bin": want ${NAME} for the value of a variable, or $$ for a dollar sign`,
		"a$":         `"$": want ${NAME}`,
		"$$$":        `"$": want ${NAME}`,
		"5 $ each":   `"$ each": want ${NAME}`,
		"${":         `"${" is not a reference`,
		"x${PATH":    `"${PATH" is not a reference`,
		"${}":        `"${}" is not a reference`,
		"${1}":       `"${1}" is not a reference`,
		"${A B}":     `"${A B}" is not a reference`,
		"${A:-b}":    `"${A:-b}" is not a reference`,
		"${A$$}":     `"${A$$}" is not a reference`,
		"${C}":       "variables refer to each other: B -> C -> B",
		"${PATH}$(x": `"$(x": want ${NAME}`,
	} {
		const env = "env:\n  A: ok\n  B: '%s'\n  C: '${B}'\n"
		_, kit := profile.ParseKit("k.yaml", []byte("id: kit.a\nversion: \"1.0.0\"\n"+fmt.Sprintf(env, value)))
		_, own := profile.Parse("p.yaml", []byte("id: profile.a\ntoolchain:\n  "+strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(env, value)),
			"\n", "\n  ")+"\nversion: \"1.0.0\"\n"))
		for where, err := range map[string]error{"k.yaml:5:": kit, "p.yaml:5:": own} {
			if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), where) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v does not say %s %s", value, err, where, says)
			}
		}
	}
}

func TestVariablesThatCannotBeJoinedAreRefused(t *testing.T) {
	t.Parallel()
	var doubled []string
	list := make([]string, 40)
	for i := range list {
		list[i] = fmt.Sprintf("k%d", i)
		doubled = append(doubled, envKit(list[i], `A: "${A}${A}xxxxxxxxxx"`))
	}
	chain := []string{"id: profile.x\nversion: \"1.0.0\"\nextends: profile.y0\n"}
	for i := range 14 {
		chain = append(chain, fmt.Sprintf("id: profile.y%d\nversion: \"1.0.0\"\nextends: profile.y%d\ntoolchain: { env: { A: \"%s\" } }\n", i,
			i+1, strings.Repeat("${A}", 200)))
	}
	chain = append(chain, "id: profile.y14\nversion: \"1.0.0\"\ntoolchain: { env: { A: \"x$$\" } }\n")
	for name, c := range map[string]struct {
		files []string
		says  string
	}{
		"a conflict": {[]string{x + "toolchain: { kits: [a, b], env: { V: \"${V}3\" } }", envKit("a", `V: "${V}1"`), envKit("b", `V: "2"`)},
			"kit.a@1.0.0 and kit.b@1.0.0 set V to different values; set it in toolchain.env of the profile, or extend it in one kit with ${V}"},
		"a cycle of a child and its parent": {[]string{"id: profile.x\nversion: \"1.0.0\"\nextends: profile.y\ntoolchain: { env: { A: \"${B}\" " +
			"} }\n", "id: profile.y\nversion: \"1.0.0\"\ntoolchain: { env: { B: \"${A}\" } }\n"},
			"profile.x@1.0.0: variables refer to each other: A -> B -> A"},
		"kits that double it": {append(doubled, x+"toolchain: { kits: ["+strings.Join(list, ", ")+"] }"),
			"the value of A has more than 65536 bytes once expanded"},
		"ancestors that double it": {chain, "the value of A has more than 65536 bytes once expanded"},
		"much to expand": {[]string{x + "toolchain: { env: { A: \"${A}" + strings.Repeat("x", 33_000) + "\" } }"},
			"at most 32768 are accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tools(t, c.files...)
			if text := fmt.Sprint(err, "; ", extensions.RemedyOf(err)); !extensions.IsKind(err, extensions.KindInvalid) ||
				!strings.Contains(text, c.says) {
				t.Errorf("%.500s does not say %q", text, c.says)
			}
		})
	}
}
