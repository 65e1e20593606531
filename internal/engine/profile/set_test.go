package profile_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func versions(t *testing.T, list ...string) *profile.Set {
	t.Helper()
	var texts []string
	for _, v := range list {
		texts = append(texts, "id: profile.x\nversion: \""+v+"\"\n")
	}
	return set(t, texts...)
}

func TestLookupWithoutVersionTakesTheHighestRelease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		have []string
		want string
	}{
		{[]string{"1.0.0", "1.10.0", "1.9.0"}, "1.10.0"},
		{[]string{"2.0.0-rc.1", "1.0.0"}, "1.0.0"},
		{[]string{"2.0.0-rc.1", "2.0.0-rc.10", "2.0.0-rc.9"}, "2.0.0-rc.10"},
		{[]string{"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-1", "1.0.0-alpha.beta"}, "1.0.0-alpha.beta"},
	} {
		p, err := versions(t, c.have...).Lookup("profile.x")
		if err != nil || p.Version != c.want {
			t.Errorf("of %v: %v, %v; want %s", c.have, p, err, c.want)
		}
	}
	if p, err := versions(t, "1.0.0", "2.0.0").Lookup("profile.x@1.0.0"); err != nil || p.Version != "1.0.0" {
		t.Errorf("pinned: %v, %v", p, err)
	}
}

func TestLookupOfWhatIsNotThereNamesTheNearest(t *testing.T) {
	t.Parallel()
	s := set(t, "id: profile.quickstart\nversion: \"1.0.0\"", "id: profile.build\nversion: \"1.0.0\"", "id: profile.build\nversion: \"1.1.0\"")
	for ref, want := range map[string]string{
		"profile.quikstart":   "did you mean profile.quickstart? There are: profile.build, profile.quickstart",
		"build":               "did you mean profile.build? There are: ",
		"quick":               "use one of profile.build, profile.quickstart",
		"quickstart":          "did you mean profile.quickstart?",
		"profile.zzzzzz":      "use one of profile.build, profile.quickstart",
		"":                    "use one of profile.build, profile.quickstart",
		"profile.build@1.2.0": "use one of 1.1.0, 1.0.0, or omit the version for 1.1.0",
		"profile.build@":      "use one of 1.1.0",
		"profile.build; rm":   "use one of profile.build, profile.quickstart",
		"profile.build\n":     "did you mean profile.build?",
		"profile.build\x00":   "did you mean profile.build?",
	} {
		_, err := s.Lookup(ref)
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(extensions.RemedyOf(err), want) {
			t.Errorf("%q: %v, remedy %q; want %q", ref, err, extensions.RemedyOf(err), want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q: the message is not one clean line: %q", ref, err)
		}
	}
	if _, err := profile.NewSet().Lookup("profile.x"); err == nil || extensions.RemedyOf(err) != "the catalog has no profiles at all" {
		t.Errorf("an empty set: %v", err)
	}
}

func TestAddReplacesTheSameVersionOnly(t *testing.T) {
	t.Parallel()
	s := versions(t, "1.0.0")
	again, err := profile.Parse("again.yaml", []byte("id: profile.x\nversion: \"1.0.0\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if was := s.Add(again); was == nil || was.File() != "p.yaml" {
		t.Errorf("replaced %v", was)
	}
	next, err := profile.Parse("next.yaml", []byte("id: profile.x\nversion: \"1.0.1\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if was := s.Add(next); was != nil || len(s.All()) != 2 || s.All()[0] != next || s.All()[1] != again {
		t.Errorf("replaced %v, now %v", was, s.All())
	}
}

func TestVersionsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"", "1", "1.0", "v1.0.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-a..b", "1.0.0-01", "1.0.0+build", "1.0.-1",
		"+1.0.0", "99999999999.0.0", "1.0.0-é", "1.0.0\\n"} {
		if _, err := profile.Parse("p.yaml", []byte("id: profile.x\nversion: \""+v+"\"\n")); err == nil {
			t.Errorf("version %q is accepted", v)
		}
	}
}

func TestLongChainsEnd(t *testing.T) {
	t.Parallel()
	var texts []string
	for c := 'a'; c < 'z'; c++ {
		texts = append(texts, "id: profile."+string(c)+"\nversion: \"1.0.0\"\nextends: profile."+string(c+1)+"\n")
	}
	s := set(t, append(texts, "id: profile.z\nversion: \"1.0.0\"\n")...)
	p, err := s.Lookup("profile.a")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Flatten(p); err == nil || err.Error() != "p.yaml:3:10: more than 16 ancestors" {
		t.Errorf("got %v", err)
	}
}
