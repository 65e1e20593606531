package e2b

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// literal stands for a dollar that begins no variable: a Dockerfile has no control characters.
const literal = "\x00"

// unknown encloses the name of a variable that only the base image may set: the vendor's builder puts in its value.
const unknown = "\x01"

// words splits what an instruction has into words, as the builder of Dockerfiles does: quotes and backslashes hold
// them together, and variables are replaced outside single quotes.
func (r *recipe) words(text string, lenient bool) (all []string, err error) {
	var word strings.Builder
	quote, within := rune(0), false
	end := func() {
		if !within {
			return
		}
		out, failed := r.expand(word.String(), lenient)
		if err == nil {
			err = failed
		}
		all = append(all, out)
		word.Reset()
		within = false
	}
	runes := []rune(text)
	for i := 0; i < len(runes); i++ {
		c := runes[i]
		switch {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, within = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			end()
		case c == '\\' && quote != '\'' && i+1 < len(runes):
			i++
			if quote == '"' && !strings.ContainsRune(`"$\`, runes[i]) {
				word.WriteRune('\\')
			}
			word.WriteString(strings.ReplaceAll(string(runes[i]), "$", literal))
			within = true
		case c == '$' && quote == '\'':
			word.WriteString(literal)
		default:
			word.WriteRune(c)
			within = true
		}
	}
	if quote != 0 {
		return nil, r.wrong("a quote has no end")
	}
	end()
	return all, err
}

var variable = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:[-+])([^${}]*))?\})`)

// expand replaces the variables that ARG and ENV have set. What only the base image sets is not known here: lenient
// leaves it to the vendor.
func (r *recipe) expand(text string, lenient bool) (string, error) {
	var failed error
	out := variable.ReplaceAllStringFunc(text, func(v string) string {
		m := variable.FindStringSubmatch(v)
		value, known := r.vars[m[1]+m[2]]
		switch {
		case m[3] == ":-" && value == "", m[3] == ":+" && value != "":
			return m[4]
		case m[3] == "" && !known && lenient:
			return unknown + m[1] + m[2] + unknown
		case (m[3] == "" && !known || strings.Contains(value, unknown) && !lenient) && failed == nil:
			failed = r.cannot("an instruction with the variable " + m[1] + m[2] + ", which no ARG or ENV before it sets")
		}
		return strings.ReplaceAll(value, "$", literal)
	})
	if failed == nil && strings.Contains(variable.ReplaceAllString(text, ""), "$") {
		failed = r.cannot("an instruction with such a variable")
	}
	return strings.ReplaceAll(out, literal, "$"), failed
}

// one is the only word that an instruction has.
func (r *recipe) one(text string) (string, error) {
	all, err := r.words(text, false)
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "", r.cannot("an instruction with more than one word here")
	}
	return all[0], nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
