package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
)

func TestProgressFitsItsLine(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	p := &progress{subject: "Pulling registry.example.com/some/long/name:latest", detail: "150 of 300 MiB", since: begun}
	for width := 10; width <= 200; width++ {
		if n := ansi.StringWidth(p.line(width, begun.Add(90*time.Second))); n >= width {
			t.Fatalf("%d columns on a terminal of %d", n, width)
		}
	}
	if got := p.line(200, begun.Add(90*time.Second)); !strings.Contains(got, "[##########----------]  150 of 300 MiB  2m") {
		t.Errorf("%q", got)
	}
}

func TestAShareOfNothingHasNoBar(t *testing.T) {
	t.Parallel()
	for _, of := range [][2]string{{"0", "0"}, {"5", "4"}, {"99999999999999999999", "1"}} {
		if got := bar(of[0], of[1]); got != "" {
			t.Errorf("%s of %s: %q", of[0], of[1], got)
		}
	}
}

// What is printed between is not mixed with the line.
func TestALineOfProgressMakesRoom(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &progress{to: &out, on: nil, subject: "Pulling", since: time.Now()}
	p.draw()
	p.apart(func() { out.WriteString("note: something\n") })
	p.apart(func() {})
	if got := out.String(); strings.Count(got, "\r") != 2 || !strings.HasSuffix(got, "\r\x1b[Knote: something\n") {
		t.Errorf("%q", got)
	}
}
