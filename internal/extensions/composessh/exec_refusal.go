package composessh

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// Docker reports a command that it could not start in the command's own streams, mostly stdout. These are the
// starts of such messages.
var dockerStarts = [][]byte{
	[]byte("OCI runtime exec failed: "),
	[]byte("unable to find user "),
	[]byte("unable to find group "),
	[]byte("Error response from daemon: "),
	[]byte("Error: No such "),
	[]byte("Cannot connect to the Docker daemon"),
	[]byte("error during connect: "),
}

// maxRefusal bounds what is held back for a decision, in bytes.
const maxRefusal = 8 << 10

// refusal holds a stream back while all of it may be docker's own words.
type refusal struct {
	out     io.Writer
	pending []byte
	pass    bool
}

func (r *refusal) Write(p []byte) (int, error) {
	if r.pass {
		return r.out.Write(p)
	}
	r.pending = append(r.pending, p...)
	if len(r.pending) <= maxRefusal && mayRefuse(r.pending) {
		return len(p), nil
	}
	return len(p), r.Flush()
}

func mayRefuse(b []byte) bool {
	for _, start := range dockerStarts {
		if bytes.HasPrefix(b, start) || bytes.HasPrefix(start, b) {
			return true
		}
	}
	return false
}

func (r *refusal) Flush() error {
	r.pass = true
	pending := r.pending
	r.pending = nil
	if len(pending) == 0 {
		return nil
	}
	_, err := r.out.Write(pending)
	return err
}

// judge returns docker's words if the exit code and the container's state show that they are docker's;
// otherwise they are the command's, and it passes them on. login is the user the command was to run as.
func (r *refusal) judge(code int, state, login string) string {
	text := string(r.pending)
	whole := strings.HasSuffix(text, "\n") && mayRefuse(r.pending) && len(text) > 1
	notStarted := code == 126 || code == 127
	broken := state != "running" && (code == 1 || notStarted) || code == 1 && unknownLogin(text, login)
	if !r.pass && whole && (broken || notStarted && !strings.HasPrefix(text, "Error: ")) {
		r.pending = nil
		return strings.TrimSpace(strings.TrimPrefix(text, "Error response from daemon: "))
	}
	_ = r.Flush()
	return ""
}

// refusals judges both streams of a command.
type refusals struct {
	login  string // as refusal.judge has it
	heads  []*refusal
	failed *failure
}

func (r *refusals) hold(out io.Writer) execwire.Holder {
	head := &refusal{out: out}
	r.heads = append(r.heads, head)
	return head
}

func (r *refusals) hear(report []byte) {
	var s said
	if json.Unmarshal(report, &s) == nil && s.Failure != nil {
		r.failed = s.Failure
	}
}

// left is the error of a script that refused.
func (r *refusals) left() error {
	if r.failed == nil {
		return nil
	}
	return r.failed.classify()
}

func (r *refusals) judge(exit int, report []byte, reason io.Writer, req extensions.ExecRequest) (int, error) {
	var s said
	if err := json.Unmarshal(report, &s); err != nil {
		return exit, err // it was read before
	}
	for _, head := range r.heads {
		text := head.judge(exit, s.State, r.login)
		if text == "" {
			continue
		}
		code, why, err := notStarted(text, s.State, s.Service, req)
		if err != nil {
			return exit, err
		}
		exit = code
		_, _ = io.WriteString(reason, why)
	}
	return exit, nil
}

// unknownLogin reports whether these are docker's words for a user or group that the image lacks. Engines
// since 28 use code 1 for it, which any command may return; but a command that ran as this user had the user.
func unknownLogin(text, login string) bool {
	name, group, _ := strings.Cut(login, ":")
	const nobody = "Error response from daemon: unable to find "
	return name != "" && strings.HasPrefix(text, nobody+"user "+name+":") || group != "" && strings.HasPrefix(text, nobody+"group "+group+":")
}

// notStarted turns docker's refusal into a result or an error. A program that cannot be started is a result:
// its exit code, and the reason for stderr.
func notStarted(text, state, service string, req extensions.ExecRequest) (code int, reason string, err error) {
	why := extensions.Clean(strings.TrimSuffix(text, ": unknown"), 500)
	switch {
	case state == "docker":
		return 0, "", failure{Kind: failureDocker, Message: "the command could not be started", Detail: text}.classify()
	case state == "gone":
		return 0, "", extensions.Errorf(extensions.KindConflict, "the container of %s disappeared: %s", service, why).
			WithRemedy("check whether the sandbox has ended")
	case state != "running" && state != "restarting":
		return 0, "", extensions.Errorf(extensions.KindConflict, "the service %s is not running, its container is %s: %s", service,
			extensions.Clean(state, 40), why).
			WithRemedy("see the service's log")
	case strings.HasPrefix(text, "unable to find "):
		return 0, "", extensions.Errorf(extensions.KindUnsupported, "the service %s has no user %q: %s", service, extensions.Clean(req.User, 80),
			why).
			At("user").WithRemedy("use a user or a group of the image, or a number")
	case strings.Contains(text, "chdir to cwd"):
		return 0, "", extensions.Errorf(extensions.KindInvalid, "the command cannot run in the folder %q: %s", extensions.Clean(req.Dir, 200),
			why).
			At("dir").WithRemedy("create the folder first, or choose one that the user may enter")
	case !strings.Contains(text, `exec: "`) && !strings.Contains(text, "exec /") && !strings.Contains(text, "argument list too long"):
		return 0, "", extensions.Errorf(extensions.KindUnavailable, "Docker could not start the command in %s: %s", service, why).
			WithRemedy("try again; if it fails again, see the service's log")
	}
	_, reason, _ = strings.Cut(why, "exec: ")
	if reason == "" {
		reason = why
	}
	code = 126
	if strings.Contains(text, "not found") || strings.Contains(text, "no such file or directory") {
		code = 127
	}
	return code, "cannot start " + reason + "\n", nil
}
