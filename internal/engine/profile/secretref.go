package profile

import (
	"net/url"
	"path"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/secretref"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// SecretRef says where the value of an environment variable inside comes from. It holds no value and may
// be shown and stored.
//
//	GITHUB_TOKEN=env://GH_TOKEN             an environment variable of the caller
//	file:///run/secrets/db-password.txt     a file; the name is DB_PASSWORD
//	TOKEN=exec://pass?arg=show&arg=ci/token what a command prints, run without a shell
type SecretRef struct {
	Name string // of the variable inside
	Ref  string // see package secretref
}

// UnmarshalStrict implements strictyaml.Unmarshaler: "ref", "NAME=ref" or
// {name, ref}.
func (r *SecretRef) UnmarshalStrict(n strictyaml.Node) (err error) {
	if n.Kind() != strictyaml.Mapping {
		var s string
		if n.Decode(&s) {
			*r, err = ParseSecretRef(s)
		}
		return err
	}
	var m struct {
		Name *string `yaml:"name"`
		Ref  *string `yaml:"ref"`
	}
	switch {
	case !n.Decode(&m):
	case m.Ref == nil:
		return invalid("ref is required")
	default:
		*r, err = newSecretRef(value(m.Name, ""), *m.Ref)
	}
	return err
}

// ParseSecretRef reads "ref" or "NAME=ref". The default name is that of the variable, or the file's base
// name without its extension, in upper case and with "_" for invalid characters; a command needs a name.
// It checks only the syntax and reads and runs nothing. Errors are KindInvalid.
func ParseSecretRef(s string) (SecretRef, error) {
	name, ref, named := strings.Cut(s, "=")
	if !named || strings.Contains(name, "://") {
		return newSecretRef("", s)
	}
	if err := CheckEnvName(name); err != nil {
		return SecretRef{}, err
	}
	return newSecretRef(name, ref)
}

func newSecretRef(name, ref string) (SecretRef, error) {
	if err := secretref.Parse(ref); err != nil {
		return SecretRef{}, err
	}
	if name == "" {
		scheme, target, _ := strings.Cut(ref, "://")
		switch scheme {
		case "env":
			name = target
		case "file":
			name = nameOfFile(target)
		default:
			return SecretRef{}, invalid("the secret of an exec:// reference needs a name").WithRemedy("write NAME=%s://…", scheme)
		}
	}
	if err := CheckEnvName(name); err != nil {
		return SecretRef{}, err
	}
	return SecretRef{Name: name, Ref: ref}, nil
}

func nameOfFile(target string) string {
	base := path.Base(target)
	if plain, err := url.PathUnescape(base); err == nil {
		base = plain
	}
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
		return "_" + name
	}
	return name
}
