package extensions

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"unicode"
)

// Check returns KindInvalid for a request that no backend can run: both or neither
// of Command and Shell, NUL bytes, a timeout below zero or above MaxExecTimeout, a
// malformed environment name.
func (r ExecRequest) Check() error {
	switch {
	case len(r.Command) == 0 && r.Shell == "":
		return Errorf(KindInvalid, "nothing to run: neither command nor shell is set")
	case len(r.Command) > 0 && r.Shell != "":
		return Errorf(KindInvalid, "both command and shell are set: choose one")
	case len(r.Command) > 0 && r.Command[0] == "":
		return Errorf(KindInvalid, "the command's first word is empty")
	case r.Timeout < 0:
		return Errorf(KindInvalid, "the timeout %s is negative", r.Timeout)
	case r.Timeout > MaxExecTimeout:
		return Errorf(KindInvalid, "the timeout %s is above the maximum of %s", r.Timeout, MaxExecTimeout).
			WithRemedy("set a shorter timeout; the sandbox ends at its ttl anyway")
	}
	for _, s := range append([]string{r.Shell, r.ShellPath, r.Dir, r.User, r.Service}, r.Command...) {
		if strings.ContainsRune(s, 0) {
			return Errorf(KindInvalid, "the request contains a NUL byte, which system calls cannot pass")
		}
	}
	for k, v := range r.Env {
		if !ValidEnvName(k) {
			return Errorf(KindInvalid, "%q is not an environment variable name", k)
		}
		if strings.ContainsRune(v, 0) {
			return Errorf(KindInvalid, "the value of %s contains a NUL byte", k)
		}
	}
	return nil
}

// CheckSingle is Check at a place, named in messages, whose sandboxes have no services: one is
// KindUnsupported.
func (r ExecRequest) CheckSingle(place string) error {
	if err := r.Check(); err != nil || r.Service == "" {
		return err
	}
	return Errorf(KindUnsupported, "a sandbox of %s has no services, so %q does not exist", place, Clean(r.Service, 80)).At("service")
}

// Argv returns the program and its arguments: Command unchanged, or the shell with
// Shell.
func (r ExecRequest) Argv() []string {
	if r.Shell == "" {
		return r.Command
	}
	return []string{cmp.Or(r.ShellPath, "/bin/sh"), "-c", r.Shell}
}

// Capture keeps the first MaxExecOutput bytes of a stream, reports whether there
// were more, and passes all of them on. Its Write never fails: a reader that
// disappears does not end the command.
type Capture struct {
	Live io.Writer // may be nil
	Kept bytes.Buffer
	Cut  bool
}

func (c *Capture) Write(p []byte) (int, error) {
	if c.Live != nil {
		if _, err := c.Live.Write(p); err != nil {
			c.Live = nil
		}
	}
	room := MaxExecOutput - c.Kept.Len()
	c.Cut = c.Cut || len(p) > room
	_, _ = c.Kept.Write(p[:min(room, len(p))])
	return len(p), nil
}

// ValidEnvName reports whether s is a valid name of an environment variable: not
// empty, no "=", no control character, no space.
func ValidEnvName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r == '=' || unicode.IsControl(r) || unicode.IsSpace(r)
	})
}
