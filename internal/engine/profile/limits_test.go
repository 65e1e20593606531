package profile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

func TestProfilesAreBounded(t *testing.T) {
	t.Parallel()
	many := func(format string) string {
		var b strings.Builder
		for i := range 300 {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct{ text, want string }{
		"egress":       {"network: { egress: [" + many(`"a%d.org:1",`) + "] }", "300 entries; at most 256 are accepted"},
		"env":          {"toolchain: { env: {" + many("A%d: x,") + "} }", "300 entries; at most 256 are accepted"},
		"an env value": {"toolchain: { env: { A: " + long(70_000) + " } }", "the value of A has 70000 bytes; at most 65536 are accepted"},
		"inputs":       {"inputs: {" + many("a%d: {type: string},") + "}", "300 inputs; at most 256 are accepted"},
		"a pattern": {"inputs: { a: { type: string, pattern: " + long(2000) + " } }",
			"the pattern has 2000 bytes; at most 1024 are accepted"},
		"a nested one":   {"inputs: { a: { type: string, pattern: \"" + strings.Repeat("(", 500) + strings.Repeat(")", 500) + "\" } }", ""},
		"an exploding":   {"inputs: { a: { type: string, pattern: \"((x{100}){100}){100}\" } }", "the pattern is not a regular expression"},
		"instructions":   {"setup: { instructions: " + long(300_000) + " }", "the instructions have 300000 bytes; at most 262144 are accepted"},
		"stages":         {"image: { stages: [" + many("{context: a, tag: t%d},") + "] }", "300 stages; at most 256 are accepted"},
		"a command":      {"readiness: { command: [" + many("a%d,") + "] }", "the command has 300 words; at most 256 are accepted"},
		"a command word": {"readiness: { command: [" + long(70_000) + "] }", "the command has 70000 bytes; at most 65536 are accepted"},
		"an image":       {"image: { pull: " + long(600) + " }", "is not an image reference"},
		"a path":         {"compose: { file: " + long(70_000) + " }", "the compose file has 70000 bytes; at most 65536 are accepted"},
		"an id":          {"extension: ext." + long(200), "is not an ID"},
		"a default": {"inputs: { a: { type: string, default: " + long(70_000) + " } }",
			"the text has 70000 bytes; at most 65536 are accepted"},
		"a file": {"# " + long(1<<20), "at most 1048576 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := profile.Parse("p.yaml", []byte("id: profile.x\nversion: \"1.0.0\"\n"+c.text+"\n"))
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000 {
				t.Errorf("got %.300v, want %s", err, c.want)
			}
		})
	}
}

func TestARequestIsBounded(t *testing.T) {
	t.Parallel()
	s := set(t, base, web)
	var names []string
	inputs := map[string]any{"repo": "."}
	list := make([]any, 0, 10)
	for i := range 300 {
		names = append(names, fmt.Sprintf("A%d", i))
	}
	for range 10 {
		list = append(list, strings.Repeat("x", 60_000))
	}
	inputs["tags"] = list
	_, err := profile.Resolve(s, profile.Request{Profile: "profile.web", SecretNames: names, Inputs: inputs})
	for _, want := range []string{"300 secrets; at most 256 are accepted", "bytes in total; at most 262144 are accepted"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %.300v, want %s", err, want)
		}
	}
}
