package composessh

import (
	"bytes"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Docker tells a command that could not be started in the command's own
// streams, mostly on stdout. These are the beginnings of what it says.
var refusals = [][]byte{
	[]byte("OCI runtime exec failed: "),
	[]byte("unable to find user "),
	[]byte("unable to find group "),
	[]byte("Error response from daemon: "),
	[]byte("Error: No such "),
	[]byte("Cannot connect to the Docker daemon"),
	[]byte("error during connect: "),
}

// maxRefusal bounds what is held back to be judged, in bytes.
const maxRefusal = 8 << 10

// refusal holds a stream back as long as all of it may be docker's own words.
type refusal struct {
	out  io.Writer
	held []byte
	pass bool
}

func (r *refusal) Write(p []byte) (int, error) {
	if r.pass {
		return r.out.Write(p)
	}
	r.held = append(r.held, p...)
	if len(r.held) <= maxRefusal && mayRefuse(r.held) {
		return len(p), nil
	}
	return len(p), r.flush()
}

func mayRefuse(b []byte) bool {
	for _, start := range refusals {
		if bytes.HasPrefix(b, start) || bytes.HasPrefix(start, b) {
			return true
		}
	}
	return false
}

func (r *refusal) flush() error {
	r.pass = true
	held := r.held
	r.held = nil
	if len(held) == 0 {
		return nil
	}
	_, err := r.out.Write(held)
	return err
}

// judge returns docker's words when the exit code and the container's state say
// that they are docker's; else they are the command's, and passed on. login is
// the user that the command was to run as.
func (r *refusal) judge(code int, state, login string) string {
	text := string(r.held)
	whole := strings.HasSuffix(text, "\n") && mayRefuse(r.held) && len(text) > 1
	notStarted := code == 126 || code == 127
	broken := state != "running" && (code == 1 || notStarted) || code == 1 && unknownLogin(text, login)
	if !r.pass && whole && (broken || notStarted && !strings.HasPrefix(text, "Error: ")) {
		r.held = nil
		return strings.TrimSpace(strings.TrimPrefix(text, "Error response from daemon: "))
	}
	_ = r.flush()
	return ""
}

// unknownLogin reports that these are docker's words for a user or a group that
// the image does not have. Engines since 28 say it with the code 1, which is any
// command's; but one that ran as this user had the user.
func unknownLogin(text, login string) bool {
	name, group, _ := strings.Cut(login, ":")
	const nobody = "Error response from daemon: unable to find "
	return name != "" && strings.HasPrefix(text, nobody+"user "+name+":") || group != "" && strings.HasPrefix(text, nobody+"group "+group+":")
}

// notStarted makes docker's refusal a result or an error. A program that cannot
// be started is a result: its exit code, and the reason for stderr.
func notStarted(text, state, service string, req extensions.ExecRequest) (code int, reason string, err error) {
	why := extensions.Clean(strings.TrimSuffix(text, ": unknown"), 500)
	switch {
	case state == "docker":
		return 0, "", failure{Kind: failureDocker, Message: "the command could not be started", Detail: text}.classify()
	case state == "gone":
		return 0, "", extensions.Errorf(extensions.KindConflict, "the container of %s went away: %s", service, why).
			WithRemedy("look whether the sandbox has ended")
	case state != "running" && state != "restarting":
		return 0, "", extensions.Errorf(extensions.KindConflict, "the service %s is not running, its container is %s: %s", service, extensions.Clean(state, 40), why).
			WithRemedy("its log says why")
	case strings.HasPrefix(text, "unable to find "):
		return 0, "", extensions.Errorf(extensions.KindUnsupported, "the service %s has no user %q: %s", service, extensions.Clean(req.User, 80), why).
			At("user").WithRemedy("name a user or a group of the image, or a number")
	case strings.Contains(text, "chdir to cwd"):
		return 0, "", extensions.Errorf(extensions.KindInvalid, "the folder %q cannot be used as the command's: %s", extensions.Clean(req.Dir, 200), why).
			At("dir").WithRemedy("make the folder first, or name one the user may enter")
	case !strings.Contains(text, `exec: "`) && !strings.Contains(text, "exec /") && !strings.Contains(text, "argument list too long"):
		return 0, "", extensions.Errorf(extensions.KindUnavailable, "docker could not start the command in %s: %s", service, why).
			WithRemedy("try again; look at the service's log if it stays so")
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
