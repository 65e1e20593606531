package compose

import (
	"strings"
	"testing"
)

func TestWhatIsLeftOutIsNoted(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		"{a: {image: x}}":                nil,
		"{a: {image: x, restart: 'no'}}": nil,
		"{a: {image: x, deploy: {restart_policy: {condition: none}}}}":                            nil,
		"{a: {image: x, restart: 'no', deploy: {restart_policy: {condition: any}}}}":              nil,
		"{a: {image: x, profiles: [off], restart: always, ports: [80]}, b: {image: x}}":           nil,
		"{a: {image: x, expose: [80]}}":                                                           nil,
		"{a: {image: x, restart: always}, b: {image: x}, c: {image: x, restart: 'on-failure:3'}}": {"restart policies of a, c are dropped: "},
		"{a: {image: x, deploy: {restart_policy: {condition: on-failure}}}}":                      {"restart policies of a are dropped: "},
		"{a: {image: x, deploy: {restart_policy: {max_attempts: 3}}}}":                            {"restart policies of a are dropped: "},
		"{a: {image: x, ports: ['8080:80', '80', '53:53/udp']}, b: {image: x, ports: ['443']}}": {"ports of a (80, " +
			"53/udp), b (443) are not published: "},
		"{a: {image: x, ports: ['80'], restart: unless-stopped}}": {"restart policies",
			"ports of a (80) are not published"},
	} {
		in := Input{Source: pack(t, map[string]string{"compose.yaml": "services: " + body + "\n"}, nil), Deny: true}
		p, err := Load(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		notes := p.Notes(true)
		if len(notes) != len(want) {
			t.Errorf("%s: %q", body, notes)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(notes[i], want[i]) {
				t.Errorf("%s: %q, want %q", body, notes[i], want[i])
			}
		}
		for _, n := range p.Notes(false) { // the profile's own choice
			if strings.HasPrefix(n, "ports") {
				t.Errorf("%s: %q", body, n)
			}
		}
		in.Deny = false
		if p, err = Load(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		for _, n := range p.Notes(true) {
			if strings.HasPrefix(n, "ports") {
				t.Errorf("allowed, %s: %q", body, n)
			}
		}
	}
}

func TestANoteIsBounded(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for range 12 {
		for _, n := range []string{"a", "b", "c"} {
			all.WriteString("  " + n + strings.Repeat("x", all.Len()/8) + ": {image: x, restart: always}\n")
		}
	}
	p, err := Load(t.Context(), Input{Source: pack(t, map[string]string{"compose.yaml": "services:\n" + all.String()}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if notes := p.Notes(true); len(notes) != 1 || len(notes[0]) > 1000 || !strings.Contains(notes[0], " and 26 more") {
		t.Errorf("%q", notes)
	}
}
