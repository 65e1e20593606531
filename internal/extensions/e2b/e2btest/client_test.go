package e2btest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/envd/process"
)

// client is a user of the vendor.
type client struct {
	t *testing.T
	v *Vendor
	h *http.Client
}

func connected(t *testing.T) client {
	t.Helper()
	v := Start(t)
	h := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(h.CloseIdleConnections)
	return client{t: t, v: v, h: h}
}

// do calls the control plane and wants one of these answers.
func (c client) do(method, path string, body any, wanted int) map[string]any {
	c.t.Helper()
	status, header, text := c.raw(method, path, body)
	if status != wanted {
		c.t.Fatalf("%s %s: %d %s, not %d", method, path, status, text, wanted)
	}
	out := map[string]any{"header": header}
	var list []any
	if json.Unmarshal(text, &out) != nil && json.Unmarshal(text, &list) == nil {
		out["list"] = list
	}
	return out
}

func (c client) raw(method, path string, body any) (int, http.Header, []byte) {
	c.t.Helper()
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		send = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.v.APIURL+path, send)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("X-API-Key", c.v.Key)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.h.Do(req)
	if err != nil {
		return 0, nil, []byte(err.Error())
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res.StatusCode, res.Header, text
}

// made creates a sandbox.
func (c client) made(more map[string]any) (id, token string) {
	c.t.Helper()
	body := map[string]any{"templateID": "base", "timeout": 300, "secure": true}
	for name, value := range more {
		body[name] = value
	}
	out := c.do("POST", "/sandboxes", body, http.StatusCreated)
	token, _ = out["envdAccessToken"].(string)
	return out["sandboxID"].(string), token
}

// into addresses a call to a sandbox's daemon.
func into[T any](id, token string, msg *T) *connect.Request[T] {
	req := connect.NewRequest(msg)
	req.Header().Set("E2b-Sandbox-Id", id)
	req.Header().Set("E2b-Sandbox-Port", "49983")
	req.Header().Set("X-Access-Token", token)
	return req
}

// shell runs a script inside to its end.
func (c client) shell(id, token, script string, change func(*process.StartRequest)) (out string, end *process.ProcessEvent_EndEvent, err error) {
	c.t.Helper()
	no := false
	msg := &process.StartRequest{Process: &process.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", script}}, Stdin: &no}
	if change != nil {
		change(msg)
	}
	stream, err := process.NewProcessClient(c.h, c.v.SandboxURL).Start(c.t.Context(), into(id, token, msg))
	if err != nil {
		return "", nil, err
	}
	defer stream.Close()
	var text strings.Builder
	for stream.Receive() {
		e := stream.Msg().GetEvent()
		text.Write(e.GetData().GetStdout())
		text.Write(e.GetData().GetStderr())
		text.Write(e.GetData().GetPty())
		if e.GetEnd() != nil {
			end = e.GetEnd()
		}
	}
	return text.String(), end, stream.Err()
}
