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

// CheckID returns KindInvalid unless id is prefix followed by lower-case words joined by "-" or ".":
// "profile.compose-e2e".
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
		return invalid("%s is not an ID: want %q, then lower-case letters, digits, - and .", quoted(id), prefix)
	}
	return nil
}

// CheckName returns KindInvalid unless name can name a sandbox or a host: at most 63 letters, digits, ".",
// "_" and "-", starting with a letter or digit.
func CheckName(name string) error {
	if len(name) > maxName || !word(name, "._-") {
		return invalid("%s is not a name: want letters, digits, . _ and -, starting with a letter or digit, at most %d characters", quoted(name),
			maxName)
	}
	return nil
}

// CheckCheckpoint returns KindInvalid unless text is the ID or the name of a snapshot.
func CheckCheckpoint(text string) error {
	if extensions.ValidSnapshotID(text) || CheckName(text) == nil {
		return nil
	}
	return invalid("%s is neither the ID nor the name of a snapshot", quoted(text))
}

// CheckEnvName returns KindInvalid unless name is an environment variable name that a shell accepts.
func CheckEnvName(name string) error {
	ok := name != "" && len(name) <= 255 && (name[0] < '0' || name[0] > '9')
	for _, r := range name {
		ok = ok && (r == '_' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)))
	}
	if !ok {
		return invalid("%s is not an environment variable name: want letters, digits and _, not starting with a digit", quoted(name))
	}
	return nil
}

// word reports whether s has only ASCII letters, digits and extra, starting with a letter or digit.
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
