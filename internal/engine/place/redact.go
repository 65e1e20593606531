package place

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Redact hides the place's credentials and the call's secrets in text.
func (b *Backend) Redact(text string, with map[string]extensions.Secret) string {
	return b.Redactor(with)(text)
}

// Redactor is Redact for many texts.
func (b *Backend) Redactor(with map[string]extensions.Secret) func(text string) string {
	secrets := b.places.secretsOf(b.Binding.ID, with)
	return func(text string) string { return redact(text, secrets) }
}

// secretsOf lists the secrets to redact, longest first: the credentials of a binding, and the given ones.
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
	add(p.hiddenOf(binding))
	if b, ok := p.Catalog.Binding(binding); ok {
		add(p.Credentials[b.ID])
		add(p.usual(b))
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(out)
}

// Adapters keep secrets out of their errors; redaction is the safety net. A value of a few bytes is no secret: hiding
// it everywhere would reveal it and spoil the message. A short one counts only as a whole word.
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
