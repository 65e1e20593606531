package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/cli/mcpserver"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/all"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

const canary = "canary-key-41d7"

func TestMain(m *testing.M) {
	if err := os.Setenv("MCP_CANARY", canary); err != nil { // of this machine, so not for an agent
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// catalogOf writes a catalog of profiles that an agent may, or may not, have.
func catalogOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"profiles/profile.priced.yaml": "id: profile.priced\nversion: \"1.0.0\"\nextends: profile.base\nextension: ext.priced\n" +
			"isolation: { level: container }\nresources: { cpu: 1 }\n",
		"profiles/profile.secret.yaml": "id: profile.secret\nversion: \"1.0.0\"\nextends: profile.quickstart\nsetup: { secret_refs: [\"env://HOME\"] }\n",
		"profiles/profile.open.yaml":   "id: profile.open\nversion: \"1.0.0\"\nextends: profile.quickstart\nnetwork: { default: allow }\n",
		"profiles/profile.bare.yaml":   "id: profile.bare\nversion: \"1.0.0\"\nextends: profile.quickstart\nisolation: { level: none }\n",
		"extensions/ext.priced.yaml":   "id: ext.priced\nhandler: saas-stub\n",
		"prices/prices.priced.yaml": "id: prices.priced\nextension: ext.priced\nversion: \"1\"\nas_of: \"2026-08-01\"\nvalid_until: \"2099-01-01\"\n" +
			"source: a test\ncurrency: USD\nconfidence: exact\nbilling: wall-clock\ncomponents:\n" +
			"  - { component: vcpu, unit: vcpu-second, price: \"0.0001\" }\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func engineOf(t *testing.T) *engine.Engine {
	t.Helper()
	return engineAt(t, filepath.Join(t.TempDir(), "state"), nil)
}

// engineAt has a state folder and a clock; nil = this machine's.
func engineAt(t *testing.T, state string, now func() time.Time) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Options{Extensions: all.Extensions(), Catalog: []string{catalogOf(t)}, StateDir: state, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func limitsOf(profiles ...string) mcpserver.Limits {
	return mcpserver.Limits{Profiles: profiles, Budget: "0.00 USD", Sandboxes: 2, TTL: 30 * time.Minute, Output: 4 << 10}
}

// agent is a client of one server.
type agent struct {
	*mcp.ClientSession
	t      *testing.T
	engine *engine.Engine
	hangUp func() error // closes the connection and returns the server's end
}

func serve(t *testing.T, e *engine.Engine, limits mcpserver.Limits) *agent {
	t.Helper()
	return serveIn(t.Context(), t, e, limits, func(engine.Notice) {})
}

func serveIn(ctx context.Context, t *testing.T, e *engine.Engine, limits mcpserver.Limits, notify func(engine.Notice)) *agent {
	t.Helper()
	s, err := mcpserver.New(e, limits, notify)
	if err != nil {
		t.Fatal(err)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := s.Run(ctx, "1.2.3", in, out)
		_ = out.Close()
		ended <- err
	}()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{ClientSession: c, t: t, engine: e, hangUp: sync.OnceValue(func() error {
		_ = toServer.Close()
		err := <-ended
		_ = c.Close()
		return err
	})}
	t.Cleanup(func() {
		if err := a.hangUp(); err != nil {
			t.Errorf("the end: %v", err)
		}
	})
	return a
}

// try calls a tool and returns what it says and whether it refused.
func (a *agent) try(tool string, args map[string]any, into any) (text string, refused bool) {
	a.t.Helper()
	r, err := a.CallTool(a.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error(), true
	}
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	if into != nil && !r.IsError {
		b, err := json.Marshal(r.StructuredContent)
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			a.t.Fatal(err)
		}
	}
	return text, r.IsError
}

func (a *agent) call(tool string, args map[string]any, into any) {
	a.t.Helper()
	if text, refused := a.try(tool, args, into); refused {
		a.t.Fatalf("%s %v: %s", tool, args, text)
	}
}

func (a *agent) refuses(tool string, args map[string]any, want string) {
	a.t.Helper()
	if text, refused := a.try(tool, args, nil); !refused || !strings.Contains(text, want) {
		a.t.Errorf("%s %v: refused %v: %s; want %q", tool, args, refused, text, want)
	}
}

type sandbox struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at"`
	MaxCost   string    `json:"max_cost"`
}

func (a *agent) create(profile string) (s sandbox) {
	a.t.Helper()
	a.call("sandbox_create", map[string]any{"profile": profile}, &s)
	return s
}

type execResult struct {
	ExitCode               int `json:"exit_code"`
	Stdout, Stderr, Encode string
	Truncated              bool
}

func (a *agent) sh(id, script string) (r execResult) {
	a.t.Helper()
	a.call("sandbox_exec", map[string]any{"id": id, "shell": script}, &r)
	return r
}

// alive lists the engine's live sandboxes.
func alive(t *testing.T, e *engine.Engine) (ids []string) {
	t.Helper()
	all, err := e.List(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		ids = append(ids, string(s.ID))
	}
	return ids
}

func TestAnAgentMakesUsesKeepsAndEndsSandboxes(t *testing.T) {
	t.Parallel()
	a := serve(t, engineOf(t), limitsOf("profile.quickstart"))
	s := a.create("profile.quickstart")
	if life := time.Until(s.ExpiresAt); life > 31*time.Minute || life < 28*time.Minute {
		t.Errorf("it lives for %s", life)
	}
	a.call("sandbox_write", map[string]any{"id": s.ID, "path": "src/hello", "content": "#!/bin/sh\ncat\necho $WHO >&2\nexit 3\n", "executable": true}, nil)
	var r execResult
	a.call("sandbox_exec", map[string]any{"id": s.ID, "command": []string{"src/hello"}, "stdin": "in", "env": map[string]string{"WHO": "me"}}, &r)
	if r.ExitCode != 3 || r.Stdout != "in" || r.Stderr != "me\n" || r.Truncated {
		t.Errorf("%+v", r)
	}
	var kept struct{ ID string }
	a.call("sandbox_snapshot", map[string]any{"id": s.ID}, &kept)
	a.sh(s.ID, "rm -r src")
	var second sandbox
	a.call("sandbox_create", map[string]any{"profile": "profile.quickstart", "from_snapshot": kept.ID, "ttl": "5m"}, &second)
	var file struct {
		Content, Encoding string
		Size              int64 `json:"size_bytes"`
	}
	a.call("sandbox_read", map[string]any{"id": second.ID, "path": "src/hello"}, &file)
	if !strings.HasPrefix(file.Content, "#!/bin/sh\ncat\n") || file.Encoding != "utf-8" || file.Size != int64(len(file.Content)) {
		t.Errorf("%+v", file)
	}
	var list struct {
		Sandboxes, Snapshots []struct{ ID string }
		Room                 int `json:"sandboxes_left"`
	}
	a.call("sandbox_list", nil, &list)
	if len(list.Sandboxes) != 2 || len(list.Snapshots) != 1 || list.Room != 0 {
		t.Errorf("%+v", list)
	}
	a.refuses("sandbox_create", map[string]any{"profile": "profile.quickstart"}, "2 sandboxes at once")
	a.call("sandbox_destroy", map[string]any{"id": s.ID}, nil)
	a.call("sandbox_destroy", map[string]any{"id": kept.ID}, nil)
	a.refuses("sandbox_destroy", map[string]any{"id": s.ID}, "no sandbox")
	if ids := alive(t, a.engine); len(ids) != 1 || ids[0] != second.ID {
		t.Errorf("alive: %v", ids)
	}
}

func TestWhatAnAgentMadeEndsWithItsSession(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	a := serve(t, e, limitsOf("profile.quickstart"))
	s := a.create("profile.quickstart")
	a.call("sandbox_snapshot", map[string]any{"id": s.ID}, nil)
	asked := make(chan struct{})
	go func() { // one command and one create are under way
		defer close(asked)
		_, _ = a.CallTool(context.Background(), &mcp.CallToolParams{Name: "sandbox_exec", Arguments: map[string]any{"id": s.ID, "shell": "sleep 600"}})
	}()
	go func() {
		_, _ = a.CallTool(context.Background(), &mcp.CallToolParams{Name: "sandbox_create", Arguments: map[string]any{"profile": "profile.quickstart"}})
	}()
	if err := a.hangUp(); err != nil {
		t.Errorf("the end: %v", err)
	}
	<-asked
	if ids := alive(t, e); len(ids) > 0 {
		t.Errorf("alive: %v", ids)
	}
	if kept, err := e.Snapshots(t.Context(), false); err != nil || len(kept) > 0 {
		t.Errorf("kept: %v, %v", kept, err)
	}
}

// The agent acts on instructions that somebody put into what it reads.
func TestInjectedInstructionsReachNothingElse(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	mine, err := e.Create(t.Context(), engine.Request{Profile: "profile.quickstart", Name: "mine", TTL: "10m"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = e.Destroy(context.Background(), mine.Receipt, engine.DestroyOptions{}) }()
	keep, err := e.Snapshot(t.Context(), mine.Receipt, engine.SnapshotRequest{Name: "keep"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = e.DeleteSnapshot(context.Background(), keep, false) }()

	home, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, ".ssh", "id_ed25519"), canary)
	write(t, filepath.Join(root, "app", "main"), "code")
	if err := os.Symlink(filepath.Join(home, ".ssh"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	limits := limitsOf("profile.quickstart")
	limits.Roots = []string{root}
	a := serve(t, e, limits)
	var s sandbox
	a.call("sandbox_create", map[string]any{"profile": "profile.quickstart", "inputs": map[string]any{"repo": filepath.Join(root, "app")}}, &s)

	for _, repo := range []any{
		filepath.Join(home, ".ssh"), filepath.Join(root, "link"), root + "/app/../../" + filepath.Base(home), "~/.ssh", "app", "file://" + home,
		"https://example.com/x.git", "ssh://git@example.com/x", []any{home}, 7, filepath.Join(root, "none"), "/proc/self/root" + home,
	} {
		a.refuses("sandbox_create", map[string]any{"profile": "profile.quickstart", "inputs": map[string]any{"repo": repo}}, "repo must be a folder in")
	}
	for _, profile := range []string{"profile.secret", "profile.bare", "profile.open", "profile.quickstart@1.0.0", "", "../x"} {
		a.refuses("sandbox_create", map[string]any{"profile": profile}, "is not allowed")
	}
	for _, more := range []map[string]any{
		{"secrets": map[string]any{"KEY": "file://" + home + "/.ssh/id_ed25519"}}, {"host": "host://x"}, {"hosts": []string{"x"}},
		{"env": map[string]any{"HOME": "env://HOME"}}, {"extension": "ext.compose-ssh"}, {"max_cost": "100 USD"}, {"name": "mine"},
	} {
		more["profile"] = "profile.quickstart"
		a.refuses("sandbox_create", more, "additional properties")
	}
	for _, ttl := range []string{"31m", "24h", "-1h", "1000000h", "forever"} {
		a.refuses("sandbox_create", map[string]any{"profile": "profile.quickstart", "ttl": ttl}, "ttl")
	}
	a.refuses("sandbox_create", map[string]any{"profile": "profile.quickstart", "from_snapshot": keep.ID}, "no snapshot")
	a.refuses("sandbox_create", map[string]any{"profile": "profile.quickstart", "from_snapshot": "keep"}, "no snapshot")
	for _, id := range []string{string(mine.ID), "mine", "", s.ID + " "} {
		for tool, args := range map[string]map[string]any{
			"sandbox_exec": {"shell": "id"}, "sandbox_read": {"path": "x"}, "sandbox_write": {"path": "x", "content": "x"},
			"sandbox_snapshot": {}, "sandbox_destroy": {},
		} {
			args["id"] = id
			a.refuses(tool, args, "this session has no sandbox")
		}
	}
	a.refuses("sandbox_destroy", map[string]any{"id": keep.ID}, "no sandbox")
	a.refuses("sandbox_extend", map[string]any{"id": s.ID, "ttl": "24h"}, "unknown tool")

	for _, script := range []string{"cat " + home + "/.ssh/*", "cat /proc/1/environ /proc/*/environ", "env", "ls -a ~/ ~/.ssh"} {
		if r := a.sh(s.ID, script); strings.Contains(r.Stdout+r.Stderr, canary) {
			t.Errorf("%s: %+v", script, r)
		}
	}
	a.sh(s.ID, "ln -s "+home+"/.ssh/id_ed25519 key; ln -s "+home+" folder")
	for _, path := range []string{home + "/.ssh/id_ed25519", "key", "folder/.ssh/id_ed25519", "../../../../../../../.." + home + "/.ssh/id_ed25519"} {
		if text, refused := a.try("sandbox_read", map[string]any{"id": s.ID, "path": path}, nil); !refused || strings.Contains(text, canary) {
			t.Errorf("%s: %s", path, text)
		}
	}
	for _, path := range []string{home + "/.ssh/authorized_keys", "folder/.ssh/authorized_keys", "../../../../../../../.." + home + "/x"} {
		_, _ = a.try("sandbox_write", map[string]any{"id": s.ID, "path": path, "content": "x"}, nil)
	}
	if there, err := os.ReadDir(filepath.Join(home, ".ssh")); err != nil || len(there) != 1 {
		t.Errorf("%v, %v", there, err)
	}
	if ids := alive(t, e); len(ids) != 2 {
		t.Errorf("alive: %v", ids)
	}
}

func TestTheAnswersOfAnAgentAreBounded(t *testing.T) {
	t.Parallel()
	a := serve(t, engineOf(t), limitsOf("profile.quickstart"))
	s := a.create("profile.quickstart")
	r := a.sh(s.ID, `i=0; while [ $i -lt 3000 ]; do printf 'ä€'; i=$((i+1)); done; printf 'x\377' >&2`)
	if r.ExitCode != 0 || !r.Truncated || len(r.Stdout) > 6<<10 {
		t.Errorf("%d bytes, %v", len(r.Stdout), r.Truncated)
	}
	a.sh(s.ID, `i=0; while [ $i -lt 3000 ]; do printf 'ä€'; i=$((i+1)); done >text; head -c 9000 /dev/zero >zeros; mkdir folder`)
	var whole strings.Builder
	for at, parts := int64(0), 0; ; parts++ {
		var p struct {
			Content, Encoding string
			Size              int64 `json:"size_bytes"`
			Next              int64 `json:"next_offset"`
		}
		a.call("sandbox_read", map[string]any{"id": s.ID, "path": "text", "offset": at}, &p)
		if p.Encoding != "utf-8" || len(p.Content) > 4<<10 || p.Size != 15000 || parts > 5 {
			t.Fatalf("%s of %d, %d bytes", p.Encoding, p.Size, len(p.Content))
		}
		whole.WriteString(p.Content)
		if at = p.Next; at == 0 {
			break
		}
	}
	if whole.String() != strings.Repeat("ä€", 3000) {
		t.Errorf("%d bytes came back", whole.Len())
	}
	a.refuses("sandbox_read", map[string]any{"id": s.ID, "path": "folder"}, "not a regular file")
	a.refuses("sandbox_read", map[string]any{"id": s.ID, "path": "none"}, "not_found")
	a.refuses("sandbox_exec", map[string]any{"id": s.ID, "shell": "sleep 60", "timeout_seconds": 0.2}, "timeout")
	a.refuses("sandbox_exec", map[string]any{"id": s.ID}, "invalid")
	a.refuses("sandbox_exec", map[string]any{"id": s.ID, "shell": "id", "timeout_seconds": 1e300}, "invalid")
	a.refuses("sandbox_write", map[string]any{"id": s.ID, "path": "x/", "content": ""}, "does not name a file")
}

func TestAnAgentSpendsNoMoreThanItsBudget(t *testing.T) {
	t.Parallel()
	limits := limitsOf("profile.priced")
	limits.Budget, limits.Sandboxes = "0.40 USD", 50
	a := serve(t, engineOf(t), limits) // 30 minutes of one vCPU cost up to 0.18 USD
	var mu sync.Mutex
	var all sync.WaitGroup
	made, refused := []string{}, 0
	for range 8 {
		all.Go(func() {
			var s sandbox
			text, no := a.try("sandbox_create", map[string]any{"profile": "profile.priced"}, &s)
			mu.Lock()
			defer mu.Unlock()
			if no {
				refused++
				if !strings.Contains(text, "max_cost") {
					t.Error(text)
				}
				return
			}
			made = append(made, s.ID)
		})
	}
	all.Wait()
	if len(made) != 2 || refused != 6 {
		t.Fatalf("%d made, %d refused", len(made), refused)
	}
	a.call("sandbox_destroy", map[string]any{"id": made[0]}, nil)
	a.create("profile.priced")
	a.refuses("sandbox_create", map[string]any{"profile": "profile.priced"}, "max_cost")
}

// Machines that share a ledger go by its server's clock, and by its clock the vendor's sandboxes live.
func TestOnlyWhatTheLedgersClockCallsOverdueMakesRoom(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	var off atomic.Int64
	move := func(d time.Duration) {
		off.Add(int64(d))
		if err := vendor.At(filepath.Join(state, "saas-stub")).Advance(d); err != nil {
			t.Fatal(err)
		}
	}
	e := engineAt(t, state, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
	limits := limitsOf("profile.priced")
	limits.Budget = "1.00 USD"
	a := serve(t, e, limits)
	move(-time.Hour)
	first, second := a.create("profile.priced"), a.create("profile.priced")
	if !first.ExpiresAt.Before(time.Now()) {
		t.Fatalf("by this machine's clock it is not over: %s", first.ExpiresAt)
	}
	if got := alive(t, e); len(got) != 2 {
		t.Fatalf("of %s and %s, alive: %q", first.ID, second.ID, got)
	}
	a.refuses("sandbox_create", map[string]any{"profile": "profile.priced"}, "at once")
	move(31 * time.Minute)
	third := a.create("profile.priced")
	if got := alive(t, e); len(got) != 1 || got[0] != third.ID {
		t.Errorf("at the deadline, alive: %q, want %s", got, third.ID)
	}
}

func TestLimitsThatCannotHoldAreRefused(t *testing.T) {
	t.Parallel()
	e := engineOf(t)
	for want, change := range map[string]func(*mcpserver.Limits){
		"no profile is allowed":        func(l *mcpserver.Limits) { l.Profiles = nil },
		"no profile \"profile.none\"":  func(l *mcpserver.Limits) { l.Profiles = []string{"profile.none"} },
		"takes the secrets HOME":       func(l *mcpserver.Limits) { l.Profiles = []string{"profile.secret"} },
		"its network is open":          func(l *mcpserver.Limits) { l.Profiles = []string{"profile.open"} },
		"it has no walls":              func(l *mcpserver.Limits) { l.Profiles = []string{"profile.bare"} },
		"the root \"/none/at/all\"":    func(l *mcpserver.Limits) { l.Roots = []string{"/none/at/all"} },
		"not an amount of money":       func(l *mcpserver.Limits) { l.Budget = "5" },
		"0 sandboxes at once":          func(l *mcpserver.Limits) { l.Sandboxes = 0 },
		"want a positive duration":     func(l *mcpserver.Limits) { l.TTL = 0 },
		"1 bytes of output: want 1024": func(l *mcpserver.Limits) { l.Output = 1 },
	} {
		limits := limitsOf("profile.quickstart")
		change(&limits)
		if _, err := mcpserver.New(e, limits, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	limits := limitsOf("profile.open")
	limits.OpenNetwork = true
	if _, err := mcpserver.New(e, limits, nil); err != nil {
		t.Error(err)
	}
}

func TestTheToolsSayWhatIsAllowed(t *testing.T) {
	t.Parallel()
	limits := limitsOf("profile.quickstart", "profile.priced@1.0.0")
	limits.Roots = []string{t.TempDir()}
	a := serve(t, engineOf(t), limits)
	tools, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.Name != "sandbox_create" {
			continue
		}
		for _, want := range []string{"- profile.quickstart", "- profile.priced@1.0.0", "input repo (string)", limits.Roots[0], "At most 2 at once", "0.00 USD"} {
			if !strings.Contains(tool.Description, want) {
				t.Errorf("%q is not in %s", want, tool.Description)
			}
		}
	}
	if got := fmt.Sprint(names); got != "[sandbox_create sandbox_destroy sandbox_exec sandbox_list sandbox_read sandbox_snapshot sandbox_write]" {
		t.Error(got)
	}
}
