package place

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Redact hides in text the credentials of the place and the secrets that came
// with a call.
func (b *Backend) Redact(text string, with map[string]extensions.Secret) string {
	return redact(text, b.places.secretsOf(b.Binding.ID, with))
}

// secretsOf lists, longest first, what must not be in a text: the credentials
// of a binding, and what else is given.
func (p *Places) secretsOf(binding string, with map[string]extensions.Secret) []string {
	var out []string
	add := func(m map[string]extensions.Secret) {
		for _, s := range m {
			if len(s.Reveal()) >= shortestSecret {
				out = append(out, s.Reveal())
			}
		}
	}
	add(with)
	if b, ok := p.Catalog.Binding(binding); ok {
		add(p.CredentialsOf(b))
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(out)
}

// Adapters keep secrets out of their errors; redaction is the net below. A
// value of a few bytes is no secret, and hiding it everywhere would tell what
// it is and spoil the message; a short one counts as a whole word only.
const (
	shortestSecret = 4
	shortSecret    = 8
)

func redact(text string, secrets []string) string {
	for _, s := range secrets {
		text = replaceSecret(text, s)
	}
	return text
}

func replaceSecret(text, secret string) string {
	if len(secret) >= shortSecret {
		return strings.ReplaceAll(text, secret, extensions.Redacted)
	}
	var b strings.Builder
	for {
		i := strings.Index(text, secret)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := i + len(secret)
		b.WriteString(text[:i])
		before, _ := utf8.DecodeLastRuneInString(b.String())
		after, _ := utf8.DecodeRuneInString(text[end:])
		if inWord(before) || inWord(after) {
			b.WriteString(secret)
		} else {
			b.WriteString(extensions.Redacted)
		}
		text = text[end:]
	}
}

func inWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}
