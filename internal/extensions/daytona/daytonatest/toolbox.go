package daytonatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"time"
)

// proxy is what stands before all sandboxes: their toolboxes by path, their ports by host.
func (v *Vendor) proxy() http.Handler {
	one := func(do func(*sandbox, *http.Request, []byte) (any, error)) operation {
		return func(r *http.Request, body []byte) (any, error) {
			v.expire()
			v.mu.Lock()
			s := v.sandboxes[r.PathValue("sandboxId")]
			runs := s != nil && s.state == "started"
			if runs {
				s.active = v.clock.Now()
			}
			v.mu.Unlock()
			if !runs {
				return nil, fail(http.StatusBadRequest, "bad request: failed to resolve container IP. Is the Sandbox started?")
			}
			return do(s, r, body)
		}
	}
	upload := "POST /files/upload"
	if v.cloud {
		upload = "POST /files/upload-v2"
	}
	toolbox := v.serve(v.inside, "/toolbox/{sandboxId}", map[string]operation{
		"POST /process/execute":   one(v.execute),
		upload:                    one(v.upload),
		"POST /files/bulk-upload": one(v.uploads),
		"GET /files/download":     one(v.download),
		"POST /computeruse/start": one(v.startDesktop),
		"GET /user-home-dir": one(func(*sandbox, *http.Request, []byte) (any, error) {
			return map[string]any{"dir": homes["daytona"]}, nil
		}),
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sub, ok := strings.CutSuffix(r.Host, "."+v.Domain); ok {
			v.port(w, r, sub)
			return
		}
		toolbox.ServeHTTP(w, r)
	})
}

// startDesktop starts the desktop, where the image has its programs.
func (v *Vendor) startDesktop(s *sandbox, _ *http.Request, _ []byte) (any, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.noDesktop {
		return nil, fail(http.StatusServiceUnavailable, "Computer-use functionality is not available")
	}
	s.desktop = true
	status := map[string]any{}
	for i, process := range []string{"xvfb", "xfce4", "x11vnc", "novnc"} {
		status[process] = map[string]any{"running": true, "priority": (i + 1) * 100, "autoRestart": true, "pid": 100 + i}
	}
	return map[string]any{"message": "Computer use processes started successfully", "status": status}, nil
}

// Desktop reports whether the desktop of a sandbox runs.
func (v *Vendor) Desktop(id string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sandboxes[id].desktop
}

// SetNoDesktop makes images lack the programs of a desktop.
func (v *Vendor) SetNoDesktop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.noDesktop = true
}

// port passes a request on to a port inside, of a sandbox whose ports are private.
func (v *Vendor) port(w http.ResponseWriter, r *http.Request, sub string) {
	port, id, _ := strings.Cut(sub, "-")
	n, _ := strconv.Atoi(port)
	v.mu.Lock()
	s := v.sandboxes[id]
	allowed := s != nil && s.state == "started" && r.Header.Get("X-Daytona-Preview-Token") == s.token
	address := v.listeners[n]
	v.mu.Unlock()
	if !allowed {
		http.Redirect(w, r, "https://app.daytona.test/login", http.StatusTemporaryRedirect)
		return
	}
	if address == "" {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address}).ServeHTTP(w, r)
}

func (v *Vendor) upload(s *sandbox, r *http.Request, _ []byte) (any, error) {
	f, _, err := r.FormFile("file")
	if err != nil {
		return nil, fail(http.StatusBadRequest, "file is required")
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	at := s.Host(r.URL.Query().Get("path"))
	if err := errors.Join(os.WriteFile(at, text, 0o644), os.Chown(at, s.UID, s.UID)); err != nil {
		return nil, fail(http.StatusBadRequest, "cannot create the file: "+path.Base(at))
	}
	if v.cloud {
		return v.inside.Only("UploadedFile", map[string]any{"path": r.URL.Query().Get("path"), "name": path.Base(at), "type": "file"}), nil
	}
	return map[string]any{}, nil
}

func (v *Vendor) download(s *sandbox, r *http.Request, _ []byte) (any, error) {
	at := s.Host(r.URL.Query().Get("path"))
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fail(http.StatusNotFound, "file not found")
	case err != nil || info.IsDir():
		return nil, fail(http.StatusBadRequest, "path is a directory")
	}
	text, err := os.ReadFile(at)
	return raw(text), err
}

// uploads writes files[0].file to the path in files[0].path, and so on.
func (v *Vendor) uploads(s *sandbox, r *http.Request, _ []byte) (any, error) {
	if err := r.ParseMultipartForm(8 << 20); err != nil {
		return nil, fail(http.StatusBadRequest, "invalid form")
	}
	for name, files := range r.MultipartForm.File {
		to := r.FormValue(strings.TrimSuffix(name, ".file") + ".path")
		f, err := files[0].Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(f)
		at := s.Host(to)
		if err := errors.Join(err, f.Close(), os.WriteFile(at, text, 0o644), os.Chown(at, s.UID, s.UID)); err != nil {
			return nil, fail(http.StatusBadRequest, "cannot create the file: "+to)
		}
	}
	return map[string]any{}, nil
}

// execute runs a command line to its end; both its streams are one text. The cloud's daemon has a shell read it, the older one
// splits it itself.
func (v *Vendor) execute(s *sandbox, r *http.Request, body []byte) (any, error) {
	var want struct {
		Command string            `json:"command"`
		Cwd     string            `json:"cwd"`
		Envs    map[string]string `json:"envs"`
		Timeout *int              `json:"timeout"`
	}
	if err := json.Unmarshal(body, &want); err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.commands = append(v.commands, want.Command)
	v.mu.Unlock()
	limit := 10 * time.Second
	if want.Timeout != nil {
		limit = time.Duration(*want.Timeout) * time.Second
	}
	argv := split(want.Command)
	if v.cloud {
		argv = []string{"/bin/sh", "-c", want.Command}
	}
	if len(argv) == 0 {
		return nil, fail(http.StatusBadRequest, "empty command")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), limit)
	defer cancel()
	var out bytes.Buffer
	cmd := &exec.Cmd{Path: s.LookPath(argv[0]), Args: argv, Dir: homes["daytona"], Stdout: &out, Stderr: &out, WaitDelay: time.Second,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + homes["daytona"], "USER=daytona"}}
	if want.Cwd != "" {
		cmd.Dir = want.Cwd
	}
	for name, value := range want.Envs {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	if err := s.Start(cmd); err != nil {
		return map[string]any{"exitCode": 127, "result": err.Error()}, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	if !stop() {
		return nil, fail(http.StatusRequestTimeout, "command execution timeout")
	}
	code := cmd.ProcessState.ExitCode()
	if code < 0 { // a signal ended it, in tests always KILL
		code = 137
	}
	return map[string]any{"exitCode": code, "result": strings.ToValidUTF8(out.String(), "\uFFFD")}, nil
}

// split cuts a command line into words at spaces, but not in quotes.
func split(line string) (words []string) {
	var word strings.Builder
	quote, open := rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case quote == 0 && c == ' ':
			if open || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
		}
	}
	if open || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}
