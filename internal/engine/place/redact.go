package place

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Hide redacts the secrets of a sandbox from now on, in whatever is told of it here.
func (b *Backend) Hide(id extensions.ID, secrets map[string]extensions.Secret) {
	b.places.hide(string(id), secrets)
}

// Hides reports whether Hide knows all these secrets of a sandbox, by name.
func (b *Backend) Hides(id extensions.ID, names []string) bool {
	known := b.places.hiddenOf(string(id))
	return !slices.ContainsFunc(names, func(name string) bool {
		_, ok := known[name]
		return !ok
	})
}

// hide makes secrets some of a binding's or a sandbox's that are redacted.
func (p *Places) hide(of string, secrets map[string]extensions.Secret) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := map[string]extensions.Secret{}
	maps.Copy(known, p.hidden[of])
	maps.Copy(known, secrets)
	p.hidden[of] = known
}

// hiddenOf returns what hide was told.
func (p *Places) hiddenOf(of string) map[string]extensions.Secret {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hidden[of]
}

// Redactor hides, in text about a sandbox, its own secrets, the place's credentials, and those of one command.
func (b *Backend) Redactor(id extensions.ID, with map[string]extensions.Secret) func(text string) string {
	secrets := b.places.secretsOf(b.Binding.ID, id, with)
	return func(text string) string { return redact(text, secrets) }
}

// secretsOf lists the secrets to redact, longest first: the credentials of a binding, a sandbox's own, and the given
// ones. Of a secret of several lines each one counts, since output is told line by line.
func (p *Places) secretsOf(binding string, id extensions.ID, with map[string]extensions.Secret) []string {
	var out []string
	add := func(m map[string]extensions.Secret) {
		for _, s := range m {
			whole := s.Reveal()
			lines := []string{whole}
			if strings.Contains(whole, "\n") {
				lines = append(lines, strings.FieldsFunc(whole, func(r rune) bool { return r == '\r' || r == '\n' })...)
			}
			out = append(out, lines...)
		}
	}
	add(with)
	add(p.hiddenOf(binding))
	add(p.hiddenOf(string(id)))
	if b, ok := p.Catalog.Binding(binding); ok {
		add(p.Credentials[b.ID])
		add(p.usual(b))
	}
	out = slices.DeleteFunc(out, func(s string) bool { return len(s) < shortestSecret })
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
