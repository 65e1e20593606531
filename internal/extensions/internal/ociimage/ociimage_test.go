package ociimage

import (
	"strings"
	"testing"
)

const someDigest = "@sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestImagesOfOurNamesAreKnownHoweverSpelled(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{
		"sandboxer/build", "sandboxer/build:1", "sandboxer/build" + someDigest, "sandboxer/build:1" + someDigest, "sandboxer/a/b",
		"docker.io/sandboxer/build", "index.docker.io/sandboxer/build:1", "registry-1.docker.io/sandboxer/build",
		"registry.hub.docker.com/sandboxer/x",
		"docker.io:443/sandboxer/build", "docker.io/library/sandboxer/build", "library/sandboxer/build", "Sandboxer/Build",
		"DOCKER.IO/SANDBOXER/build",
		"sandboxer.invalid/toolbox:1", "sandboxer.invalid:5000/x", "SANDBOXER.invalid/x", " sandboxer/build", "docker.io//sandboxer/build",
	} {
		if !Reserved(ref) {
			t.Errorf("%q passes", ref)
		}
	}
	for _, ref := range []string{"", "/", "busybox", "sandboxer", "sandboxer:1", "acme/sandboxer", "ghcr.io/sandboxer/agent:1", "sandboxers/x",
		"docker.io/acme/sandboxer",
		"sandboxer.example/x", "acme/x" + someDigest} {
		if Reserved(ref) {
			t.Errorf("%q is refused", ref)
		}
	}
}

func TestAReferenceIsANameAndNoID(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"busybox", "busybox:1.36", "ghcr.io/acme/x:1" + someDigest, "localhost:5000/x", "abc123"} {
		if !Valid(ref) {
			t.Errorf("%q is refused", ref)
		}
	}
	for _, ref := range []string{"", "-x", "a b", "a\nb", "sha256:" + strings.Repeat("0", 64), strings.Repeat("0", 64), strings.Repeat("x", 513)} {
		if Valid(ref) {
			t.Errorf("%q passes", ref)
		}
	}
	for ref, want := range map[string]string{"abc123": "abc123:latest", "abc123:1": "abc123:1", "busybox": "busybox"} {
		if got := ByName(ref); got != want {
			t.Errorf("%q is %q", ref, got)
		}
	}
}

func TestOnlyADigestPins(t *testing.T) {
	t.Parallel()
	if !Pinned("registry.example/squid:6" + someDigest) {
		t.Error("a digest does not pin")
	}
	for _, ref := range []string{"squid", "squid:6", "squid@sha256:abc", "a b" + someDigest, someDigest, "squid" + someDigest + "0"} {
		if Pinned(ref) {
			t.Errorf("%q counts as pinned", ref)
		}
	}
}

func TestAKeyIsOfAllInputs(t *testing.T) {
	t.Parallel()
	type inputs struct {
		Target         string
		Args           map[string]string
		Tree, CacheKey string
	}
	seen := map[string]bool{}
	for _, in := range []inputs{{}, {Target: "x"}, {Args: map[string]string{"a": "b"}}, {Tree: "x"}, {CacheKey: "x"}} {
		k := Key(in)
		if seen[k] || len(k) != 64 {
			t.Errorf("%q", k)
		}
		seen[k] = true
	}
	one, two := map[string]string{"a": "1", "b": "2"}, map[string]string{"b": "2", "a": "1"}
	if Key(inputs{Args: one}) != Key(inputs{Args: two}) || !strings.HasPrefix(Tag("k"), Repository+":") || !Reserved(Tag("k")) {
		t.Error("equal inputs differ, or the name is not ours")
	}
}

func TestADockerfileIsPutOntoAnotherImage(t *testing.T) {
	t.Parallel()
	text := "FROM --platform=linux/amd64 base AS x\nFROM other\nCOPY --from=base /a /b\nRUN echo base\n"
	want := "FROM --platform=linux/amd64 new:1 AS x\nFROM other\nCOPY --from=new:1 /a /b\nRUN echo base\n"
	if got := Onto(text, "base", "new:1"); got != want {
		t.Errorf("%q", got)
	}
}
