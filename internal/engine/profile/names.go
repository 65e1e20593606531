package profile

import (
	"strings"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Prefixes of ids.
const (
	ProfilePrefix   = "profile."
	ExtensionPrefix = "ext."
	KitPrefix       = "kit."
)

const (
	maxID   = 128 // bytes of a profile's, kit's or binding's id
	maxName = 63  // bytes of a sandbox's name
)

// CheckID returns KindInvalid unless id is prefix and lower-case words joined
// by "-" or ".": "profile.compose-e2e".
func CheckID(prefix, id string) error {
	rest, ok := strings.CutPrefix(id, prefix)
	if ok && len(id) <= maxID {
		ok = rest != ""
		for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == '-' || r == '.' }) {
			ok = ok && strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
		}
		edge := func(c byte) bool { return c == '-' || c == '.' }
		ok = ok && !edge(rest[0]) && !edge(rest[len(rest)-1]) && !strings.Contains(rest, "..")
	} else {
		ok = false
	}
	if !ok {
		return invalid("%s is not an id: want %q and lower-case letters, digits, - and . after it", quoted(id), prefix)
	}
	return nil
}

// CheckName returns KindInvalid unless name can name a sandbox or a host:
// letters, digits, ".", "_" and "-", a letter or digit first, at most 63.
func CheckName(name string) error {
	if len(name) > maxName || !word(name, "._-") {
		return invalid("%s is not a name: want letters, digits, . _ and -, a letter or digit first, at most %d", quoted(name), maxName)
	}
	return nil
}

// CheckEnvName returns KindInvalid unless name can name an environment
// variable that a shell accepts.
func CheckEnvName(name string) error {
	ok := name != "" && len(name) <= 255 && (name[0] < '0' || name[0] > '9')
	for _, r := range name {
		ok = ok && (r == '_' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)))
	}
	if !ok {
		return invalid("%s is not an environment variable's name: want letters, digits and _, no digit first", quoted(name))
	}
	return nil
}

// word reports ASCII letters, digits and extra, a letter or digit first.
func word(s, extra string) bool {
	alnum := func(r rune) bool { return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	if s == "" || !alnum(rune(s[0])) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return !alnum(r) && !strings.ContainsRune(extra, r) })
}

func isControl(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }

var (
	isolationNames   = words(extensions.IsolationLevels)
	secretDeliveries = words(extensions.SecretDeliveries)
)

func words[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}
