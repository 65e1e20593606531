package compose

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxExpanded bounds what interpolation may produce in one load, in bytes.
	maxExpanded = 16 << 20
	// maxNesting bounds how deep one variable's default may nest others.
	maxNesting = 32
)

var errExpands = fmt.Errorf("interpolation makes more than %d bytes", maxExpanded)

// expander interpolates one place of a stack. It sees only what it is given, never this process's
// environment.
type expander struct {
	lookup func(string) (string, bool)
	// unset receives the name of a variable without value and default.
	unset func(name string)
	left  *int // bytes that interpolation may still produce
}

// substitute does what Compose's interpolation does: $$, $NAME, ${NAME} and ${NAME:-word} with -, ?, + and
// their colon forms, words nested. It is our own so that an unset variable is found wherever it hides, and so
// that the text bounds time and memory.
func (x *expander) substitute(text string, depth int) (string, error) {
	if depth > maxNesting {
		return "", fmt.Errorf("variables are nested more than %d deep", maxNesting)
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:i])
		text = text[i+1:]
		var value string
		switch n := nameLen(text); {
		case text[0] == '$':
			value, text = "$", text[1:]
		case text[0] == '{':
			end := closing(text)
			if end < 0 {
				return "", errors.New("a ${ is not closed; write $$ for a dollar sign")
			}
			var err error
			if value, err = x.braced(text[1:end], depth); err != nil {
				return "", err
			}
			text = text[end+1:]
		case n > 0:
			value, text = x.plain(text[:n]), text[n:]
		default:
			value = "$" // as in Compose: a dollar sign that names nothing
		}
		if *x.left -= len(value); *x.left < 0 {
			return "", errExpands
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

func (x *expander) plain(name string) string {
	v, ok := x.lookup(name)
	if !ok {
		x.unset(name)
	}
	return v
}

func (x *expander) braced(expr string, depth int) (string, error) {
	n := nameLen(expr)
	name, rest := expr[:n], expr[n:]
	if n == 0 {
		return "", fmt.Errorf("${%s} has no variable name; write $$ for a dollar sign", short(expr))
	}
	if rest == "" {
		return x.plain(name), nil
	}
	colon := rest[0] == ':'
	if colon {
		rest = rest[1:]
	}
	if rest == "" || !strings.ContainsRune("-+?", rune(rest[0])) {
		return "", fmt.Errorf("${%s} is not an interpolation; write $$ for a dollar sign", short(expr))
	}
	v, ok := x.lookup(name)
	set := ok && (!colon || v != "")
	word := rest[1:]
	switch {
	case rest[0] == '+' && !set, rest[0] != '+' && set:
		return v, nil
	case rest[0] == '?':
		why, err := x.substitute(word, depth+1)
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("the stack requires the variable %s: %s", name, short(why))
	}
	return x.substitute(word, depth+1)
}

// nameLen returns the length of the variable name at the start of text.
func nameLen(text string) int {
	for i := range len(text) {
		c := text[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}

// closing returns the index of the brace that closes the one at the start of text.
func closing(text string) int {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

func short(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
