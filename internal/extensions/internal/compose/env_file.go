package compose

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// maxVars bounds the variables of one env file.
const maxVars = 10_000

var escapes = regexp.MustCompile(`\\(?:[abcfnrtv$"\\]|0\d{0,3})`)

// parseEnvFile adds the variables of a .env file to vars, in Compose's dialect. Values see vars through x,
// which bounds each expansion.
func parseEnvFile(text string, vars map[string]string, x *expander) error {
	text = strings.TrimPrefix(text, "\uFEFF")
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return nil
		}
		if text[0] == '#' {
			_, text, _ = strings.Cut(text, "\n")
			continue
		}
		if len(vars) > maxVars {
			return fmt.Errorf("it sets more than %d variables", maxVars)
		}
		rest, err := envStatement(text, vars, x)
		if err != nil {
			return err
		}
		text = rest
	}
}

var envExport = regexp.MustCompile(`^export[ \t\v\f\r]+`)

func envStatement(text string, vars map[string]string, x *expander) (string, error) {
	text = text[len(envExport.FindString(text)):]
	end := strings.IndexAny(text, "=:\n")
	if end < 0 {
		text, end = text+"\n", len(text) // the last line
	}
	name := strings.TrimRightFunc(text[:end], unicode.IsSpace)
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_.-[]", r) {
			return "", fmt.Errorf("%q is not a variable name", short(name))
		}
	}
	if name == "" {
		return "", errors.New("a line has a value but no name")
	}
	if text[end] == '\n' { // inherited
		if v, ok := x.lookup(name); ok {
			vars[name] = v
		}
		return text[end+1:], nil
	}
	value, rest, err := envValue(strings.TrimLeft(text[end+1:], " \t\v\f\r\u0085\u00a0"), x)
	if err != nil {
		return "", fmt.Errorf("%s: %w", short(name), err)
	}
	vars[name] = value
	return rest, nil
}

func envValue(text string, x *expander) (value, rest string, err error) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		value, rest, _ = strings.Cut(text, "\n")
		value, _, _ = strings.Cut(value, " #")
		value, err = x.substitute(strings.TrimRightFunc(value, unicode.IsSpace), 0)
		return value, rest, err
	}
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			if value = b.String(); quote == '"' {
				value, err = x.substitute(escapes.ReplaceAllStringFunc(value, unescape), 0)
			}
			return value, text[i+1:], err
		case c == '\\' && i+1 < len(text) && text[i+1] == quote:
			i++
			b.WriteByte(quote)
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(c)
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("a quoted value is not closed")
}

func unescape(seq string) string {
	if seq == `\$` {
		return "$$" // a dollar sign that names nothing
	}
	v, _, _, err := strconv.UnquoteChar(strings.Replace(seq, `\0`, `\`, 1), '"')
	if err != nil {
		return seq
	}
	return string(v)
}

// parseRawEnvFile reads the format "raw": NAME=value lines without expansion.
func parseRawEnvFile(text string, vars map[string]string) error {
	for line := range strings.Lines(strings.TrimPrefix(text, "\uFEFF")) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimLeft(line, " \t"), "=")
		if name == "" || strings.ContainsAny(name, " \t") {
			return fmt.Errorf("%q is not a variable name", short(name))
		}
		if ok {
			vars[name] = value
		}
		if len(vars) > maxVars {
			return fmt.Errorf("it sets more than %d variables", maxVars)
		}
	}
	return nil
}
