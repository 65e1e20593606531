package lifecycle

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var update = flag.Bool("update", false, "write the diagram into docs/design/lifecycle.md")

func TestDiagramInDocsIsThatOfTheTable(t *testing.T) {
	page := filepath.Join("..", "..", "..", "docs", "design", "lifecycle.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), "```mermaid\n")
	drawn, after, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatalf("%s has no mermaid block", page)
	}
	if drawn == diagram() {
		return
	}
	if !*update {
		t.Fatalf("%s does not show the table: run go test ./internal/engine/lifecycle -run Diagram -update", page)
	}
	if err := os.WriteFile(page, []byte(before+"```mermaid\n"+diagram()+"```"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestEveryEdgeIsBetweenStatesAndOnce(t *testing.T) {
	t.Parallel()
	seen := map[[2]State]bool{}
	for _, e := range Edges {
		if !Valid(e.From) || !Valid(e.To) || e.From == e.To || e.Why == "" || seen[[2]State{e.From, e.To}] {
			t.Errorf("%+v", e)
		}
		seen[[2]State{e.From, e.To}] = true
		if !Can(e.From, e.To) || !slices.Contains(next(e.From), e.To) {
			t.Errorf("the table has %s -> %s and Can or Next does not", e.From, e.To)
		}
	}
	if Can(Ready, Requested) || Can(Ready, Ready) || Can(Destroyed, Destroying) {
		t.Error("Can allows what is not in the table")
	}
}

func TestOnlyDestroyedIsTerminalAndReachableFromEverywhere(t *testing.T) {
	t.Parallel()
	for _, s := range States {
		if Terminal(s) != (len(next(s)) == 0) || Terminal(s) != (s == Destroyed) {
			t.Errorf("%s: terminal %t, goes on to %v", s, Terminal(s), next(s))
		}
		reached := []State{s}
		for i := 0; i < len(reached); i++ {
			for _, n := range next(reached[i]) {
				if !slices.Contains(reached, n) {
					reached = append(reached, n)
				}
			}
		}
		if !slices.Contains(reached, Destroyed) {
			t.Errorf("%s never ends", s)
		}
	}
}

func TestWhatMayCostMoneyIsDestroyedOnlyThroughDestroying(t *testing.T) {
	t.Parallel()
	for _, s := range States {
		if s != Requested && s != Destroying && Can(s, Destroyed) {
			t.Errorf("%s is called destroyed without a teardown", s)
		}
	}
}

func TestRecreateKeepsTheSandbox(t *testing.T) {
	t.Parallel()
	for _, s := range States {
		want := slices.Contains([]State{Requested, Ready, Active, Expired, Failed}, s)
		if Can(s, Provisioning) != want {
			t.Errorf("%s -> provisioning: %t", s, !want)
		}
	}
}

func TestActiveIsShownAsReady(t *testing.T) {
	t.Parallel()
	for _, s := range States {
		want := string(s)
		if s == Active {
			want = "ready"
		}
		if Shown(s) != want {
			t.Errorf("%s is shown as %s", s, Shown(s))
		}
	}
}

var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestExpiresAt(t *testing.T) {
	t.Parallel()
	if got, err := ExpiresAt(created, 2*time.Hour); err != nil || !got.Equal(created.Add(2*time.Hour)) {
		t.Fatal(got, err)
	}
	for name, c := range map[string]struct {
		created time.Time
		ttl     time.Duration
	}{
		"zero":          {created, 0},
		"negative":      {created, -time.Second},
		"beyond 9999":   {time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), 1<<63 - 1},
		"end of time":   {time.Unix(1<<62, 0), 1<<63 - 1},
		"most negative": {created, -1 << 63},
	} {
		if _, err := ExpiresAt(c.created, c.ttl); !extensions.IsKind(err, extensions.KindInvalid) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRetarget(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for name, c := range map[string]struct {
		current     time.Duration // from creation
		before, now time.Duration
		limit       time.Duration
		want        time.Duration // 0 = invalid
	}{
		"extends":                           {2 * h, 2 * h, 4 * h, 0, 4 * h},
		"shortens":                          {4 * h, 4 * h, 2 * h, 0, 2 * h},
		"keeps a later extension by others": {8 * h, 2 * h, 4 * h, 0, 8 * h},
		"goes beyond an earlier extension by others": {3 * h, 2 * h, 4 * h, 0, 4 * h},
		"shrinking undoes an extension by others":    {8 * h, 4 * h, 2 * h, 0, 2 * h},
		"unchanged leaves what others set":           {1 * h, 2 * h, 2 * h, 0, 1 * h},
		"unchanged above a lowered maximum":          {4 * h, 4 * h, 4 * h, 3 * h, 4 * h},
		"at the maximum":                             {2 * h, 2 * h, 24 * h, 24 * h, 24 * h},
		"above the maximum":                          {2 * h, 2 * h, 24*h + 1, 24 * h, 0},
		"zero":                                       {2 * h, 2 * h, 0, 0, 0},
		"negative":                                   {2 * h, 2 * h, -h, 0, 0},
	} {
		got, err := Retarget(created, created.Add(c.current), c.before, c.now, c.limit)
		if c.want == 0 {
			if !extensions.IsKind(err, extensions.KindInvalid) {
				t.Errorf("%s: want invalid, got %v, %v", name, got, err)
			}
			continue
		}
		if err != nil || !got.Equal(created.Add(c.want)) {
			t.Errorf("%s: got %v, %v", name, got.Sub(created), err)
		}
	}
}

func TestRetargetNeverTakesTimeAwayUnlessTheTTLShrank(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		span := rapid.Int64Range(1, int64(1<<62))
		before, now, current := time.Duration(span.Draw(rt, "before")), time.Duration(span.Draw(rt,
			"now")), created.Add(time.Duration(span.Draw(rt, "current")))
		got, err := Retarget(created, current, before, now, 0)
		if err != nil {
			rt.Fatal(err)
		}
		if now >= before && got.Before(current) {
			rt.Fatalf("%v is before %v", got, current)
		}
		if !got.Equal(current) && !got.Equal(created.Add(now)) {
			rt.Fatalf("%v is neither", got)
		}
	})
}

func TestOverdueFromTheVeryEnd(t *testing.T) {
	t.Parallel()
	if Overdue(created.Add(-1), created) || !Overdue(created, created) || !Overdue(created.Add(1), created) || Overdue(created, time.Time{}) {
		t.Fatal("wrong at the edge")
	}
}
