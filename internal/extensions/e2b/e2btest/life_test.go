package e2btest

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
)

func at(t *testing.T, out map[string]any, name string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, out[name].(string))
	if err != nil {
		t.Fatal(err)
	}
	return when
}

// left is how long a sandbox lives, in seconds.
func (c client) left(id string) int {
	c.t.Helper()
	out := c.do("GET", "/sandboxes/"+id, nil, http.StatusOK)
	return int(at(c.t, out, "endAt").Sub(c.v.Clock().Now()).Round(time.Second) / time.Second)
}

func TestADeadlineIsCountedFromNowAndMayBeShortened(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id := c.do("POST", "/sandboxes", map[string]any{"templateID": "base"}, http.StatusCreated)["sandboxID"].(string)
	if left := c.left(id); left != 15 {
		t.Errorf("%d s without a timeout", left)
	}
	for _, step := range []struct {
		path    string
		body    map[string]any
		advance time.Duration
		want    int
	}{
		{"timeout", map[string]any{"timeout": 600}, 0, 600},
		{"timeout", map[string]any{"timeout": 60}, 10 * time.Second, 60},
		{"refreshes", map[string]any{"duration": 30}, 0, 60},
		{"refreshes", map[string]any{"duration": 90}, 0, 90},
		{"connect", map[string]any{"timeout": 30}, 0, 90},
		{"connect", map[string]any{"timeout": 120}, 0, 120},
	} {
		c.v.Clock().Advance(step.advance)
		status, _, text := c.raw("POST", "/sandboxes/"+id+"/"+step.path, step.body)
		if left := c.left(id); left != step.want || status >= 300 {
			t.Errorf("%v: %d s, not %d (%d %s)", step, left, step.want, status, text)
		}
	}
	c.v.Clock().Advance(121 * time.Second)
	c.do("GET", "/sandboxes/"+id, nil, http.StatusNotFound)
	c.do("DELETE", "/sandboxes/"+id, nil, http.StatusNotFound)
}

func TestThePlanLimitsLives(t *testing.T) {
	t.Parallel()
	c := connected(t)
	c.v.SetPlan(Plan{MaxHours: 1})
	if _, _, text := c.raw("POST", "/sandboxes", map[string]any{"templateID": "base", "timeout": 3601}); !strings.Contains(string(text), "Timeout cannot be greater than 1 hours") {
		t.Errorf("%s", text)
	}
	c.do("POST", "/sandboxes", map[string]any{"templateID": "base", "timeout": 0}, http.StatusBadRequest)
	id, _ := c.made(nil)
	c.v.Clock().Advance(4 * time.Minute)
	c.do("POST", "/sandboxes/"+id+"/timeout", map[string]any{"timeout": 7200}, http.StatusNoContent)
	if left := c.left(id); left != 56*60 {
		t.Errorf("%d s are left of the hour", left)
	}
}

func TestAPausedSandboxHasNoDeadlineAndItsProcessesStandStill(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	if out, _, err := c.shell(id, token, "(while sleep 0.02; do echo x >>beat; done) >/dev/null 2>&1 &", nil); err != nil || out != "" {
		t.Fatal(out, err)
	}
	beat := c.v.Sandboxes()[0].Root + "/home/user/beat"
	size := func() int64 {
		info, err := os.Stat(beat)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	grows := func() bool {
		was := size()
		for range 100 {
			if time.Sleep(10 * time.Millisecond); size() > was {
				return true
			}
		}
		return false
	}
	if !grows() {
		t.Fatal("nothing runs inside")
	}
	c.do("POST", "/sandboxes/"+id+"/pause", nil, http.StatusNoContent)
	c.do("POST", "/sandboxes/"+id+"/pause", nil, http.StatusConflict)
	c.v.Clock().Advance(48 * time.Hour)
	if was := size(); c.do("GET", "/sandboxes/"+id, nil, http.StatusOK)["state"] != paused || size() != was {
		t.Error("it is not paused")
	}
	if _, _, err := c.shell(id, token, "true", nil); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("a command in a paused sandbox: %v", err)
	}
	c.do("POST", "/sandboxes/"+id+"/timeout", map[string]any{"timeout": 60}, http.StatusNotFound)
	c.do("POST", "/sandboxes/"+id+"/connect", map[string]any{"timeout": 60}, http.StatusCreated)
	if !grows() {
		t.Error("its processes did not go on")
	}
	c.do("DELETE", "/sandboxes/"+id, nil, http.StatusNoContent)
}

func TestBothMeaningsOf429(t *testing.T) {
	t.Parallel()
	c := connected(t)
	c.v.SetPlan(Plan{CreatesPerSecond: 1, Concurrent: 2})
	c.v.Clock().Stand() // a slow machine creates fewer than one a second
	create := func() (int, http.Header, string) {
		status, header, text := c.raw("POST", "/sandboxes", map[string]any{"templateID": "base", "timeout": 60})
		return status, header, string(text)
	}
	if status, _, text := create(); status != http.StatusCreated {
		t.Fatal(text)
	}
	if status, header, text := create(); status != http.StatusTooManyRequests || header.Get("Retry-After") != "1" || !strings.Contains(text, "Rate limit exceeded") {
		t.Errorf("too fast: %d %v %s", status, header, text)
	}
	for _, want := range []int{http.StatusCreated, http.StatusTooManyRequests} {
		c.v.Clock().Advance(time.Second)
		status, header, text := create()
		if status != want || header.Get("Retry-After") != "" {
			t.Errorf("%d %v %s", status, header, text)
		}
		if want == http.StatusTooManyRequests && !strings.Contains(text, "maximum number of concurrent E2B sandboxes (2)") {
			t.Error(text)
		}
	}
	if n := c.v.Creates(); n != 2 {
		t.Errorf("%d were created", n)
	}
}

func TestNetworkRulesAreCheckedKeptAndReplaced(t *testing.T) {
	t.Parallel()
	c := connected(t)
	for _, bad := range []map[string]any{
		{"network": map[string]any{"allowOut": []string{"example.com"}}},
		{"network": map[string]any{"denyOut": []string{"example.com"}}},
		{"network": map[string]any{"allowPublicTraffic": false}, "secure": false},
	} {
		bad["templateID"] = "base"
		c.do("POST", "/sandboxes", bad, http.StatusBadRequest)
	}
	id, _ := c.made(map[string]any{"allow_internet_access": false, "network": map[string]any{"allowPublicTraffic": false, "allowOut": []string{"1.1.1.1"}}})
	rules := map[string]any{"denyOut": []string{"0.0.0.0/0"}, "allowOut": []string{"*.example.com"}}
	c.do("PUT", "/sandboxes/"+id+"/network", rules, http.StatusNoContent)
	s := c.v.Sandboxes()[0]
	if s.Internet != nil || s.Network["allowPublicTraffic"] != false || len(s.Network["allowOut"].([]any)) != 1 || s.Network["allowOut"].([]any)[0] != "*.example.com" {
		t.Errorf("%v %v", s.Internet, s.Network)
	}
}
