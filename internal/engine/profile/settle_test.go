package profile_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const alone = "id: profile.child\nversion: \"1.0.0\"\n"

func TestOnlyAStackSettles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		want  time.Duration
		probe bool
	}{
		{"compose: {file: c.yaml}", extensions.SettleDefault, false},
		{"containers: {agent: {image: {pull: a}}}", extensions.SettleDefault, false},
		{"image: {pull: a}", 0, false},
		{"", 0, false},
		{"compose: {file: c.yaml}\nreadiness: {settle: 0s}", 0, false},
		{"compose: {file: c.yaml}\nreadiness: {settle: 5m}", 5 * time.Minute, false},
		{"compose: {file: c.yaml}\nreadiness: {tcp: \"localhost:1\"}", extensions.SettleDefault, true},
		{"compose: {file: c.yaml}\nreadiness: {tcp: \"localhost:1\", settle: 1500ms}", 1500 * time.Millisecond, true},
	} {
		got, err := profile.Resolve(set(t, alone+c.text), profile.Request{Profile: "profile.child"})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if s := got.Spec; time.Duration(s.Settle) != c.want || (s.Readiness != nil) != c.probe {
			t.Errorf("%s: settles %s, probe %v; want %s, %t", c.text, time.Duration(s.Settle), s.Readiness, c.want, c.probe)
		}
	}
}

// Where nothing is a stack, there is no service to ask.
func TestAProbeOfAServiceNeedsOne(t *testing.T) {
	t.Parallel()
	s := set(t, "id: profile.base\nversion: \"1.0.0\"\nreadiness: {tcp: \"localhost:1\", service: db}\n",
		alone+"extends: profile.base\nimage: {pull: a}\n",
		"id: profile.stack\nversion: \"1.0.0\"\nextends: profile.base\ncompose: {file: c.yaml}\n")
	for _, id := range []string{"profile.base", "profile.child"} {
		if _, err := profile.Resolve(s, profile.Request{Profile: id}); err == nil ||
			!strings.Contains(err.Error(), `is "db", but the profile has no services`) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := profile.Resolve(s, profile.Request{Profile: "profile.stack"}); err != nil {
		t.Errorf("a stack: %v", err)
	}
}

func TestASettleTimeIsJudged(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{settle: -1s}":              "settle -1s is not between 0s (off) and 5m",
		"{settle: 301s}":             "settle 5m1s is not between 0s (off) and 5m",
		"{settle: 3}":                "duration",
		"{settle: soon}":             "duration",
		"{settle: 1s, interval: 1s}": "one of command, http, tcp is required",
		"{settle: 1s, service: db}":  "one of command, http, tcp is required",
		"{}":                         "one of command, http, tcp is required",
	} {
		p, err := profile.Parse("p.yaml", []byte(alone+"compose: {file: c.yaml}\nreadiness: "+text+"\n"))
		if err == nil {
			s := profile.NewSet()
			s.Add(p)
			_, err = profile.Resolve(s, profile.Request{Profile: "profile.child"})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
