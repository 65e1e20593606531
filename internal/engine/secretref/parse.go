// Package secretref resolves references to secrets that live on the machine
// Terraform runs on:
//
//	env://NAME                     an environment variable
//	file:///path  file://~/path    a file, less one trailing line break
//	exec://program?arg=a&arg=b     what a program prints, less one trailing line break
//
// Paths, programs and arguments are percent-encoded as in any URL. A program
// is a bare name found in PATH, an absolute path, or one below "~/"; it gets
// its arguments literally, no shell is involved.
//
// A reference may be shown, a value never: errors name the reference without
// exec arguments, and the value leaves the package as extensions.Secret only.
package secretref

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const forms = `Write "env://NAME", "file:///path", "file://~/path" or "exec://program?arg=a&arg=b".`

// MaxRefBytes is the maximum length of a reference in bytes.
const MaxRefBytes = 4096

type reference struct {
	scheme string // env | file | exec
	target string // variable, path or program
	args   []string
}

func (r reference) String() string {
	s := r.scheme + "://" + extensions.Clean(r.target, 200)
	if len(r.args) > 0 {
		s += "?…"
	}
	return s
}

// Parse checks the form of a reference. It is pure: it reads and runs nothing. Errors are KindInvalid.
func Parse(ref string) error {
	_, err := parse(ref)
	return err
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func parse(ref string) (reference, error) {
	scheme, rest, ok := strings.Cut(ref, "://")
	if !ok || len(ref) > MaxRefBytes {
		// Not shown: text without a scheme may be a secret pasted by mistake.
		return reference{}, invalid("this is not a secret reference")
	}
	switch scheme {
	case "env":
		if !envName.MatchString(rest) {
			return reference{}, invalid("the env:// reference has no valid variable name: use letters, digits and _")
		}
		return reference{scheme: scheme, target: rest}, nil
	case "file":
		return parseFile(rest)
	case "exec":
		return parseExec(rest)
	}
	return reference{}, invalid("%q is not a kind of secret reference", extensions.Clean(scheme, 40))
}

func parseFile(rest string) (reference, error) {
	if strings.ContainsAny(rest, "?#") {
		return reference{}, invalid("a file:// reference takes no ? or #: write %%3F or %%23 instead")
	}
	p, err := decode(rest)
	if err != nil {
		return reference{}, err
	}
	if !anchored(p) || strings.HasSuffix(p, "/") {
		return reference{}, invalid("a file:// reference needs the path of a file, absolute or below ~/")
	}
	return reference{scheme: "file", target: p}, nil
}

func parseExec(rest string) (reference, error) {
	program, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "#") {
		return reference{}, invalid("an exec:// reference takes no #: write %%23 instead")
	}
	r := reference{scheme: "exec"}
	var err error
	if r.target, err = decode(program); err != nil {
		return reference{}, err
	}
	if r.target == "" || strings.HasSuffix(r.target, "/") || strings.Contains(r.target, "/") && !anchored(r.target) {
		return reference{}, invalid("an exec:// reference needs a bare program name, an absolute path, or one below ~/")
	}
	if query == "" {
		return r, nil
	}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key != "arg" {
			return reference{}, invalid("exec:// arguments are written arg=…&arg=…; %q is unknown", extensions.Clean(key, 40))
		}
		arg, err := url.QueryUnescape(value)
		if err != nil || strings.ContainsRune(arg, 0) {
			return reference{}, invalid("argument %d of the exec:// reference has invalid percent-encoding or a NUL byte", len(r.args)+1)
		}
		r.args = append(r.args, arg)
	}
	return r, nil
}

func decode(s string) (string, error) {
	p, err := url.PathUnescape(s)
	if err != nil || strings.ContainsFunc(p, unicode.IsControl) {
		return "", invalid("the reference's path has invalid percent-encoding or a control character")
	}
	return p, nil
}

func anchored(p string) bool { return strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~/") }

func invalid(format string, args ...any) error {
	return extensions.Errorf(extensions.KindInvalid, format, args...).WithRemedy("%s", forms)
}
