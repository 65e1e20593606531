package composessh

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// say makes the first process of a service print a line.
func say(t testing.TB, b *Backend, h extensions.Handle, service, line string, stream int) {
	t.Helper()
	to := "/proc/1/fd/" + string(rune('0'+stream))
	run(t, b, h, extensions.ExecRequest{Service: service, Command: []string{"sh", "-c", `printf '%s\n' "$1" >` + to, "sh", line}})
}

func logged(t testing.TB, b *Backend, h extensions.Handle, req extensions.LogRequest) []string {
	t.Helper()
	r, err := b.Logs(t.Context(), h, req)
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	must(t, r.Close())
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// checkLogs reads the logs of the stack of severalServices.
func checkLogs(t testing.TB, b *Backend, h extensions.Handle) {
	t.Helper()
	say(t, b, h, "web", "first", 1)
	say(t, b, h, "db", `se"c | ond`, 2)
	say(t, b, h, "web", "third", 2)
	if got, want := logged(t, b, h, extensions.LogRequest{}), []string{"web | first", `db | se"c | ond`, "web | third"}; !slices.Equal(got,
		want) {
		t.Errorf("all services: %q", got)
	}
	if got := logged(t, b, h, extensions.LogRequest{Tail: 2}); !slices.Equal(got, []string{`db | se"c | ond`, "web | third"}) {
		t.Errorf("the last two lines: %q", got)
	}
	if got := logged(t, b, h, extensions.LogRequest{Service: "web"}); !slices.Equal(got, []string{"first", "third"}) {
		t.Errorf("one service: %q", got)
	}
	_, err := b.Logs(t.Context(), h, extensions.LogRequest{Service: "nope"})
	wantKind(t, "an unknown service", err, extensions.KindInvalid, "web", "db")
	r, err := b.Logs(t.Context(), h, extensions.LogRequest{Follow: true, Tail: 1})
	must(t, err)
	lines := bufio.NewScanner(r)
	say(t, b, h, "db", "fourth", 1)
	for lines.Scan() && lines.Text() != "db | fourth" {
		continue
	}
	if lines.Text() != "db | fourth" {
		t.Errorf("the log ended without the line: %v", lines.Err())
	}
	begun := time.Now()
	must(t, r.Close())
	if took := time.Since(begun); took > logGrace {
		t.Errorf("closing the log took %s", took)
	}
}

func TestALogThatIsFollowedEndsWithTheSandboxAndItsReader(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	readers := func() (n int) {
		for _, p := range s.server.Processes() {
			if strings.Contains(p.String(), "docker logs") {
				n++
			}
		}
		return n
	}
	r, err := b.Logs(t.Context(), h, extensions.LogRequest{Follow: true})
	must(t, err)
	if !waitFor(func() bool { return readers() > 0 }) {
		t.Fatal("no docker logs runs")
	}
	must(t, r.Close())
	// Docker's own program may take a moment to hear of its end.
	if !waitFor(func() bool { return readers() == 0 }) {
		t.Errorf("%d readers are left after closing", readers())
	}
	r, err = b.Logs(t.Context(), h, extensions.LogRequest{Follow: true})
	must(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, r)
		ended <- err
	}()
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the end of the sandbox is no failure of its log: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the log goes on after the sandbox")
	}
	must(t, r.Close())
}
