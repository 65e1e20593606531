package profile

import (
	"net/url"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// Schemes of secret references.
const (
	SchemeEnv  = "env"
	SchemeFile = "file"
	SchemeExec = "exec"
)

// SecretRef says where the value of an environment variable inside comes
// from. It holds no value and may be shown and stored.
//
//	GITHUB_TOKEN=env://GH_TOKEN             an environment variable of the caller
//	file:///run/secrets/db-password         a file; the name is DB_PASSWORD
//	TOKEN=exec://pass?arg=show&arg=ci/token what a command prints, run without a shell
type SecretRef struct {
	Name string // of the variable inside
	Ref  string // the reference as written
}

// Source is a reference taken apart.
type Source struct {
	Scheme string
	// Target is the variable's name, the file's absolute path or the
	// command's name or path.
	Target string
	Args   []string // of the command, in order
}

const maxRef = 4096

// UnmarshalStrict implements strictyaml.Unmarshaler: "ref", "NAME=ref" or
// {name, ref}.
func (r *SecretRef) UnmarshalStrict(n strictyaml.Node) error {
	var m struct {
		Name *string `yaml:"name"`
		Ref  *string `yaml:"ref"`
	}
	if n.Kind() == strictyaml.Mapping {
		if !n.Decode(&m) {
			return nil
		}
		if m.Ref == nil {
			return invalid("ref is required")
		}
		name := ""
		if m.Name != nil {
			name = *m.Name
		}
		got, err := newSecretRef(name, *m.Ref)
		*r = got
		return err
	}
	var s string
	if !n.Decode(&s) {
		return nil
	}
	got, err := ParseSecretRef(s)
	*r = got
	return err
}

// ParseSecretRef reads "ref" or "NAME=ref". Without a name it is that of the
// variable, or the file's base name in upper case with "_" for what cannot
// stand in a name. Only the syntax is checked; KindInvalid.
func ParseSecretRef(s string) (SecretRef, error) {
	scheme := strings.Index(s, "://")
	if eq := strings.IndexByte(s, '='); eq >= 0 && eq < scheme {
		if eq == 0 {
			return SecretRef{}, invalid("the secret reference has an empty name before =")
		}
		return newSecretRef(s[:eq], s[eq+1:])
	}
	return newSecretRef("", s)
}

func newSecretRef(name, ref string) (SecretRef, error) {
	src, err := ParseSource(ref)
	if err != nil {
		return SecretRef{}, err
	}
	if name == "" {
		switch src.Scheme {
		case SchemeEnv:
			name = src.Target
		case SchemeFile:
			name = nameOfFile(src.Target)
		default:
			return SecretRef{}, invalid("a secret from a command needs a name: write NAME=exec://…")
		}
	}
	if err := CheckEnvName(name); err != nil {
		return SecretRef{}, err
	}
	return SecretRef{Name: name, Ref: ref}, nil
}

// ParseSource takes a reference apart. KindInvalid; the message does not
// repeat the reference, in case somebody wrote the secret itself.
func ParseSource(ref string) (Source, error) {
	scheme, rest, ok := strings.Cut(ref, "://")
	switch {
	case len(ref) > maxRef:
		return Source{}, invalid("the secret reference is longer than %d bytes", maxRef)
	case !ok:
		return Source{}, invalid("a secret reference starts with env://, file:// or exec://; the secret itself must not stand here")
	case strings.ContainsFunc(ref, isControl):
		return Source{}, invalid("the secret reference has control characters")
	}
	switch scheme {
	case SchemeEnv:
		if err := CheckEnvName(rest); err != nil {
			return Source{}, err
		}
		return Source{Scheme: scheme, Target: rest}, nil
	case SchemeFile:
		if !path.IsAbs(rest) || path.Clean(rest) == "/" || strings.HasSuffix(rest, "/") {
			return Source{}, invalid("file:// wants the absolute path of a file, as in file:///run/secrets/token")
		}
		return Source{Scheme: scheme, Target: path.Clean(rest)}, nil
	case SchemeExec:
		return parseExec(rest)
	}
	near := strictyaml.Nearest(scheme, []string{SchemeEnv, SchemeFile, SchemeExec})
	if near != "" {
		return Source{}, invalid("the secret reference's scheme is unknown (did you mean %s://?)", near)
	}
	return Source{}, invalid("the secret reference's scheme is unknown: want env://, file:// or exec://")
}

func parseExec(rest string) (Source, error) {
	command, query, hasQuery := strings.Cut(rest, "?")
	command, err := url.PathUnescape(command)
	if err != nil || command == "" || strings.ContainsFunc(command, isControl) || strings.HasPrefix(command, "-") {
		return Source{}, invalid("exec:// wants a command, as in exec://pass?arg=show&arg=token")
	}
	src := Source{Scheme: SchemeExec, Target: command}
	if !hasQuery || query == "" {
		return src, nil
	}
	for part := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(part, "arg=")
		arg, err := url.QueryUnescape(value)
		if !ok || err != nil || strings.ContainsRune(arg, 0) {
			return Source{}, invalid("exec:// takes its arguments as ?arg=…&arg=…, percent-encoded, and nothing else")
		}
		src.Args = append(src.Args, arg)
	}
	return src, nil
}

func nameOfFile(p string) string {
	base := path.Base(p)
	if i := strings.LastIndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(base))
	if name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}
