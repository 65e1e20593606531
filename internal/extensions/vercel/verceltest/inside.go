package verceltest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// room is the inside of a new sandbox: with the vendor's folder, or what a snapshot has.
func (v *Vendor) room(source, id string) (*box.Box, error) {
	name := fmt.Sprintf("room%d", v.serial)
	switch source {
	case "":
		b, err := v.shelf.New(name, homes)
		if err != nil {
			return nil, err
		}
		return b, errors.Join(os.MkdirAll(b.Host(cwd), 0o755), b.Own())
	case "snapshot":
		kept, err := v.kept(id)
		if err != nil {
			return nil, err
		}
		kept.used = v.clock.Now()
		return v.shelf.Copy(name, kept.files.Root, homes)
	}
	return nil, fail(http.StatusBadRequest, "bad_request", "The fake has no such source.")
}

// absolute is a path of a request inside.
func absolute(at, from string) string {
	if path.IsAbs(at) {
		return path.Clean(at)
	}
	if from == "" {
		from = cwd
	}
	return path.Join(from, at)
}

type pathOf struct{ Path, Cwd string }

func (v *Vendor) mkdir(r *http.Request, body []byte) (answer, error) {
	var want pathOf
	s, err := v.its(r, true)
	if err == nil {
		err = decode(body, &want)
	}
	if err != nil {
		return answer{}, err
	}
	at := s.Host(absolute(want.Path, want.Cwd))
	if err := os.Mkdir(at, 0o755); err != nil {
		return answer{}, fail(http.StatusBadRequest, "bad_request", "The folder cannot be made.")
	}
	return answer{body: map[string]any{}}, os.Lchown(at, s.UID, s.UID)
}

// write unpacks an archive as the sandbox's user.
func (v *Vendor) write(r *http.Request, body []byte) (answer, error) {
	s, err := v.its(r, true)
	if err != nil {
		return answer{}, err
	}
	bad := fail(http.StatusBadRequest, "bad_request", "The body is not a gzip-compressed tar.")
	zip, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return answer{}, bad
	}
	from := tar.NewReader(zip)
	for {
		head, err := from.Next()
		if errors.Is(err, io.EOF) {
			return answer{body: map[string]any{}}, nil
		}
		if err != nil || head.Typeflag != tar.TypeReg {
			return answer{}, bad
		}
		if err := s.place(absolute(head.Name, r.Header.Get("x-cwd")), head.FileInfo().Mode().Perm(), from); err != nil {
			return answer{}, err
		}
	}
}

// place writes one file, with the folders above it.
func (s *sandbox) place(at string, mode os.FileMode, from io.Reader) error {
	for dir := path.Dir(at); ; dir = path.Dir(dir) {
		if _, err := os.Stat(s.Host(dir)); err == nil {
			break
		}
		defer func() { _ = os.Lchown(s.Host(dir), s.UID, s.UID) }()
	}
	err := os.MkdirAll(s.Host(path.Dir(at)), 0o755)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(s.Host(at), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close(), os.Chmod(s.Host(at), mode), os.Lchown(s.Host(at), s.UID, s.UID))
}

func (v *Vendor) read(r *http.Request, body []byte) (answer, error) {
	var want pathOf
	s, err := v.its(r, true)
	if err == nil {
		err = decode(body, &want)
	}
	if err != nil {
		return answer{}, err
	}
	text, err := os.ReadFile(s.Host(absolute(want.Path, want.Cwd)))
	if err != nil {
		return answer{}, fail(http.StatusNotFound, "", "no such file") // without a body
	}
	return answer{media: "application/octet-stream", raw: text}, nil
}

// command is one that was run, with the record that the vendor keeps of it.
type command struct {
	id, name string
	args     []string
	cwd      string
	begun    time.Time
	mu       sync.Mutex
	lines    []map[string]any
	exit     *int
	took     time.Duration
	ended    chan struct{}
}

func (c *command) told(sessionID string) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]any{"id": c.id, "name": c.name, "args": c.args, "cwd": c.cwd,
		"sessionId": sessionID, "startedAt": ms(c.begun), "exitCode": nil}
	if c.exit != nil {
		out["exitCode"], out["durationMs"] = *c.exit, c.took.Milliseconds()
	}
	return map[string]any{"command": out}
}

// said is all that it printed.
func (c *command) said() (out string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lines {
		out += fmt.Sprint(l["data"])
	}
	return out
}

// stream is one of a command's two: what is no UTF-8 is lost, as everywhere in JSON.
type stream struct {
	c    *command
	name string
}

func (w stream) Write(p []byte) (int, error) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.lines = append(w.c.lines, map[string]any{"stream": w.name, "data": string(p)})
	return len(p), nil
}

type newCommand struct {
	Command string
	Args    []string
	Cwd     string
	Env     map[string]string
	Sudo    bool
	Wait    bool
	Logs    bool
	Timeout int64
}

// command runs a program. Nobody's connection ends it.
func (v *Vendor) command(r *http.Request, body []byte) (answer, error) {
	var want newCommand
	if err := decode(body, &want); err != nil {
		return answer{}, err
	}
	v.mu.Lock()
	s, err := v.its(r, true)
	var c *command
	if err == nil {
		c = v.begin(s, want)
	}
	v.mu.Unlock()
	if err != nil {
		return answer{}, err
	}
	if !want.Wait {
		return answer{body: c.told(s.sessionID)}, nil
	}
	first := c.told(s.sessionID)
	select {
	case <-c.ended:
	case <-s.life.Done():
		dead := map[string]any{"code": "sandbox_stopped", "message": "The sandbox has stopped."}
		return lined([]map[string]any{first, {"stream": "error", "data": dead}})
	}
	lines := []map[string]any{first}
	if want.Logs {
		lines = append(lines, c.lines...)
	}
	return lined(append(lines, c.told(s.sessionID)))
}

func lined(lines []map[string]any) (answer, error) {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	for _, l := range lines {
		if err := to.Encode(l); err != nil {
			return answer{}, err
		}
	}
	return answer{media: ndjson, raw: out.Bytes()}, nil
}

// begin starts a process in a sandbox.
func (v *Vendor) begin(s *sandbox, want newCommand) *command {
	c := &command{id: "cmd_" + letters(24), name: want.Command, args: slices.Clone(want.Args), cwd: absolute(want.Cwd, ""),
		begun: v.clock.Now(), ended: make(chan struct{})}
	who := "vercel-sandbox"
	if want.Sudo {
		who = "root"
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.life))
	if want.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(want.Timeout)*time.Millisecond)
	}
	p := exec.CommandContext(ctx, s.LookPath(want.Command), want.Args...)
	p.Args[0], p.Dir = want.Command, c.cwd
	p.Stdout, p.Stderr = stream{c, "stdout"}, stream{c, "stderr"}
	p.WaitDelay = time.Second
	p.Env = []string{"PATH=" + box.SearchPath, "HOME=" + homes[who], "USER=" + who}
	for _, env := range []map[string]string{s.env, want.Env} {
		for name, value := range env {
			p.Env = append(p.Env, name+"="+value)
		}
	}
	s.commands[c.id] = c
	if err := s.Start(p); err != nil {
		cancel()
		code := 127
		c.exit = &code
		close(c.ended)
		return c
	}
	go func() {
		defer close(c.ended)
		defer cancel()
		_ = p.Wait()
		code := p.ProcessState.ExitCode()
		if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			code = 128 + int(status.Signal())
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.exit, c.took = &code, v.clock.Now().Sub(c.begun)
	}()
	return c
}

func (v *Vendor) known(r *http.Request) (*sandbox, *command, error) {
	s, err := v.its(r, false)
	if err != nil {
		return nil, nil, err
	}
	if c := s.commands[r.PathValue("cmdId")]; c != nil {
		return s, c, nil
	}
	return nil, nil, fail(http.StatusNotFound, "not_found", "Command not found.")
}

func (v *Vendor) getCommand(r *http.Request, _ []byte) (answer, error) {
	s, c, err := v.known(r)
	if err != nil {
		return answer{}, err
	}
	return answer{body: c.told(s.sessionID)}, nil
}

func (v *Vendor) logs(r *http.Request, _ []byte) (answer, error) {
	v.mu.Lock()
	_, c, err := v.known(r)
	v.mu.Unlock()
	if err != nil {
		return answer{}, err
	}
	select {
	case <-c.ended:
	case <-r.Context().Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return lined(c.lines)
}
