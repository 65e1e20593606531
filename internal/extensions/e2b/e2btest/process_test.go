package e2btest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/process"
)

func TestACommandRunsInASandbox(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(map[string]any{"envVars": map[string]string{"A": "1", "B": "2"}})
	out, end, err := c.shell(id, token, `pwd; id -un; echo $A $B $HOME; ls / | tr '\n' ' '; exit 7`, func(r *process.StartRequest) {
		dir := "/tmp"
		r.Process.Cwd, r.Process.Envs = &dir, map[string]string{"B": "3"}
	})
	if want := "/tmp\nuser\n1 3 /home/user\nbin dev etc home opt proc root run tmp usr var "; err != nil || out != want || end.GetExitCode() != 7 || !end.GetExited() {
		t.Errorf("%q, %v, %v", out, end, err)
	}
	for name, change := range map[string]func(*process.StartRequest){
		"no such program": func(r *process.StartRequest) { r.Process.Cmd = "nonesuch" },
		"no such folder":  func(r *process.StartRequest) { dir := "/nonesuch"; r.Process.Cwd = &dir },
	} {
		if _, _, err := c.shell(id, token, "", change); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.do("DELETE", "/sandboxes/"+id, nil, http.StatusNoContent)
	c.do("GET", "/sandboxes/"+id, nil, http.StatusNotFound)
}

func TestOnlyItsTokenOpensASandbox(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	if _, _, err := c.shell(id, "wrong", "true", nil); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a wrong token: %v", err)
	}
	req := into(id, token, &process.ListRequest{})
	req.Header().Del("E2b-Sandbox-Id")
	req.Header().Del("E2b-Sandbox-Port")
	byHost := roundTrip(func(r *http.Request) (*http.Response, error) {
		r.Host = "49983-" + id + "." + c.v.Domain
		return c.h.Transport.RoundTrip(r)
	})
	if _, err := process.NewProcessClient(&http.Client{Transport: byHost}, c.v.SandboxURL).List(t.Context(), req); err != nil {
		t.Errorf("by host name: %v", err)
	}
	stranger := into(id, token, &process.StartRequest{Process: &process.ProcessConfig{Cmd: "true"}})
	stranger.Header().Set("Authorization", "Basic bm9ib2R5Og==") // nobody
	stream, err := process.NewProcessClient(c.h, c.v.SandboxURL).Start(t.Context(), stranger)
	if err == nil {
		stream.Receive()
		err = stream.Err()
		_ = stream.Close()
	}
	if connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("an unknown user: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// start begins a script with a tag, and returns what it prints.
func (c client) start(ctx context.Context, id, token, tag, script string) *connect.ServerStreamForClient[process.StartResponse] {
	c.t.Helper()
	stream, err := process.NewProcessClient(c.h, c.v.SandboxURL).Start(ctx, into(id, token, &process.StartRequest{Tag: &tag,
		Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", script}}}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = stream.Close() })
	if !stream.Receive() || stream.Msg().GetEvent().GetStart() == nil {
		c.t.Fatalf("no start: %v", stream.Err())
	}
	return stream
}

func tagged(tag string) *process.ProcessSelector {
	return &process.ProcessSelector{Selector: &process.ProcessSelector_Tag{Tag: tag}}
}

func TestInputArrivesInOrderAndEnds(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	daemon := process.NewProcessClient(c.h, c.v.SandboxURL)
	stream := c.start(t.Context(), id, token, "cat", "cat; echo end")
	input := daemon.StreamInput(t.Context())
	for name, value := range into(id, token, &process.ListRequest{}).Header() {
		input.RequestHeader()[name] = value
	}
	send := func(m *process.StreamInputRequest) {
		if err := input.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Start{Start: &process.StreamInputRequest_StartEvent{Process: tagged("cat")}}})
	for _, text := range []string{"one ", "two "} {
		send(&process.StreamInputRequest{Event: &process.StreamInputRequest_Data{Data: &process.StreamInputRequest_DataEvent{
			Input: &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: []byte(text)}}}}})
	}
	if _, err := input.CloseAndReceive(); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.SendInput(t.Context(), into(id, token, &process.SendInputRequest{Process: tagged("cat"),
		Input: &process.ProcessInput{Input: &process.ProcessInput_Stdin{Stdin: []byte("secret\n")}}})); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.CloseStdin(t.Context(), into(id, token, &process.CloseStdinRequest{Process: tagged("cat")})); err != nil {
		t.Fatal(err)
	}
	if out, _ := rest(stream); out != "one two secret\nend\n" {
		t.Errorf("%q", out)
	}
	logs := c.do("GET", "/v2/sandboxes/"+id+"/logs", nil, http.StatusOK)["logs"]
	text, err := json.Marshal(logs)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(text); !strings.Contains(text, "c2VjcmV0") || strings.Contains(text, "b25l") {
		t.Errorf("the vendor's log keeps what SendInput sends and not what StreamInput does; it has: %s", text)
	}
}

func rest(stream *connect.ServerStreamForClient[process.StartResponse]) (string, *process.ProcessEvent_EndEvent) {
	var text strings.Builder
	for stream.Receive() {
		e := stream.Msg().GetEvent()
		text.Write(e.GetData().GetStdout())
		if e.GetEnd() != nil {
			return text.String(), e.GetEnd()
		}
	}
	return text.String(), nil
}

func TestACommandOutlivesItsCallAndEndsByASignal(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	daemon := process.NewProcessClient(c.h, c.v.SandboxURL)
	ctx, cancel := context.WithCancel(t.Context())
	stream := c.start(ctx, id, token, "loop", "while sleep 0.02; do echo x; done")
	stream.Receive()
	cancel()
	for stream.Receive() {
	}
	again, err := daemon.Connect(t.Context(), into(id, token, &process.ConnectRequest{Process: tagged("loop")}))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for again.Receive() && again.Msg().GetEvent().GetData() == nil {
	}
	if _, err := daemon.SendSignal(t.Context(), into(id, token, &process.SendSignalRequest{Process: tagged("loop"), Signal: process.Signal_SIGNAL_SIGKILL})); err != nil {
		t.Fatal(err)
	}
	var end *process.ProcessEvent_EndEvent
	for again.Receive() {
		end = again.Msg().GetEvent().GetEnd()
	}
	if end.GetStatus() != "signal: killed" || end.GetExited() || end.GetExitCode() != -1 {
		t.Errorf("%v, %v", end, again.Err())
	}
}

func TestATimeoutKillsTheCommandAlone(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // in which it starts on a slow machine, too
	defer cancel()
	stream := c.start(ctx, id, token, "parent", "sleep 1000 & echo $! $$; wait")
	out, end := rest(stream)
	if end != nil || connect.CodeOf(stream.Err()) != connect.CodeDeadlineExceeded {
		t.Errorf("%q, %v, %v", out, end, stream.Err())
	}
	alive := ""
	for range 200 {
		if alive, _, _ = c.shell(id, token, "for p in "+strings.TrimSpace(out)+"; do kill -0 $p 2>/dev/null && echo $p; done", nil); len(strings.Fields(alive)) == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if child, _, _ := strings.Cut(out, " "); strings.TrimSpace(alive) != child {
		t.Errorf("of the command and its child %q, %q is alive", out, alive)
	}
}

func TestAGrandchildHoldsTheEndBack(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	stream := c.start(t.Context(), id, token, "holder", "echo $$; sleep 1000 & exit 3")
	stream.Receive()
	waiting := make(chan bool)
	go func() { waiting <- stream.Receive() }()
	select {
	case <-waiting:
		t.Fatalf("%v while the output was held", stream.Msg())
	case <-time.After(300 * time.Millisecond):
	}
	if err := c.v.Vanish(id); err != nil {
		t.Fatal(err)
	}
	<-waiting
}

func TestAProcessSeesItsOwnKindAlone(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	stream := c.start(t.Context(), id, token, "shell", `echo $$; read -r x </proc/self/stat && echo ${x%% *} >&2; tr '\\0' ' ' </proc/$$/environ | grep -c HOME; ls -d /proc/[0-9]* | wc -l; kill -9 -- -$$ || echo leads none; kill -9 -1; exit 5`)
	pid := stream.Msg().GetEvent().GetStart().GetPid()
	out, end := rest(stream)
	if want := fmt.Sprintf("%d\n1\n", pid); !strings.HasPrefix(out, want) || pid > 100 || end.GetExitCode() != 5 || !strings.Contains(out, "leads none") {
		t.Errorf("%d: %q, %v", pid, out, end)
	}
	if out, _, err := c.shell(id, token, "echo on", nil); err != nil || out != "on\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestATerminal(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	out, end, err := c.shell(id, token, "stty size; test -t 0 && echo terminal", func(r *process.StartRequest) {
		r.Pty = &process.PTY{Size: &process.PTY_Size{Rows: 30, Cols: 90}}
	})
	if err != nil || end.GetExitCode() != 0 || strings.ReplaceAll(out, "\r", "") != "30 90\nterminal\n" {
		t.Errorf("%q, %v, %v", out, end, err)
	}
}

func TestASignOfLifeComesWhileNothingHappens(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	req := into(id, token, &process.StartRequest{Process: &process.ProcessConfig{Cmd: "sleep", Args: []string{"1000"}}})
	req.Header().Set("Keepalive-Ping-Interval", "1")
	stream, err := process.NewProcessClient(c.h, c.v.SandboxURL).Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	stream.Receive()
	if !stream.Receive() || stream.Msg().GetEvent().GetKeepalive() == nil {
		t.Errorf("%v, %v", stream.Msg(), stream.Err())
	}
	if err := c.v.Sever(id); err != nil {
		t.Fatal(err)
	}
	if stream.Receive() || !strings.Contains(stream.Err().Error(), "EOF") {
		t.Errorf("the connection was cut and says %v, %v", stream.Msg(), stream.Err())
	}
	if out, _, err := c.shell(id, token, "echo on", nil); err != nil || out != "on\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestNothingIsLeftOfASandbox(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	if out, _, err := c.shell(id, token, "setsid sleep 1000 >/dev/null 2>&1 & (setsid sleep 1000 &) >/dev/null 2>&1", nil); err != nil {
		t.Fatal(out, err)
	}
	root := c.v.Sandboxes()[0].Root
	inside := func() (n int) {
		all, _ := filepath.Glob("/proc/[0-9]*/root")
		for _, link := range all {
			if to, _ := os.Readlink(link); to == root {
				n++
			}
		}
		return n
	}
	for start := time.Now(); inside() != 4; time.Sleep(5 * time.Millisecond) { // both, and the two that keep the room
		if time.Since(start) > 10*time.Second {
			t.Fatalf("%d processes inside", inside())
		}
	}
	c.do("DELETE", "/sandboxes/"+id, nil, http.StatusNoContent)
	if n := inside(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if _, err := os.Stat(root); err == nil {
		t.Error("its folder is left")
	}
}
