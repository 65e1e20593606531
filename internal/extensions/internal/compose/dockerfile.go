package compose

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Instruction is one instruction of a Dockerfile, with its lines joined. Variables in it are as written.
type Instruction struct {
	Line, Last int    // its first and last line, from 1
	Verb       string // upper case
	Flags      []Flag
	Args       string // what follows the flags, trimmed
}

// Flag is an option of an instruction: --name=value.
type Flag struct{ Name, Value string }

// ambiguous says why a Dockerfile cannot be read in only one way.
type ambiguous struct {
	line int
	why  string
}

func (a ambiguous) Error() string { return fmt.Sprintf("line %d: %s", a.line, a.why) }

// verbs are all known instructions; those that a later builder may add are unknown.
var verbs = map[string]bool{
	"ADD": true, "ARG": true, "CMD": true, "COPY": true, "ENTRYPOINT": true, "ENV": true, "EXPOSE": true, "FROM": true, "HEALTHCHECK": true,
	"LABEL": true, "MAINTAINER": true, "ONBUILD": true, "RUN": true, "SHELL": true, "STOPSIGNAL": true, "USER": true, "VOLUME": true,
	"WORKDIR": true,
}

var (
	directive = regexp.MustCompile(`(?i)^(?:#|//)[ \t]*(syntax|check|escape)[ \t]*=[ \t]*(.*?)[ \t]*$`)
	heredoc   = regexp.MustCompile(`(?:^|[ \t])\d*<<-?[^<\s]`)
)

// parseDockerfile splits a Dockerfile into instructions. It is stricter than any builder: what two versions
// would read differently, or only some know, is an error. directives are the values of syntax and check.
func parseDockerfile(text string) (all []Instruction, directives map[string]string, err error) {
	text = strings.TrimPrefix(text, "\ufeff")
	if !utf8.ValidString(text) {
		return nil, nil, ambiguous{1, "it is not UTF-8"}
	}
	directives = map[string]string{}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		first := i
		line, err := plainLine(lines[i], i)
		if err != nil {
			return nil, nil, err
		}
		line = strings.TrimLeft(line, " \t")
		if m := directive.FindStringSubmatch(line); m != nil && len(all) == 0 {
			if name := strings.ToLower(m[1]); name != "escape" {
				directives[name] = m[2]
			} else if m[2] != `\` {
				return nil, nil, ambiguous{i + 1, "another escape character"}
			}
		}
		if line == "" || line[0] == '#' {
			continue
		}
		joined, more := continued(line)
		commented := false
		for more && i+1 < len(lines) {
			i++
			next, err := plainLine(lines[i], i)
			if err != nil {
				return nil, nil, err
			}
			bare := strings.TrimLeft(next, " \t")
			if bare == "" || bare[0] == '#' {
				// Old builders take an indented comment for text, which ends the instruction.
				commented = commented || bare != "" && bare != next
				continue
			}
			if word, _, _ := strings.Cut(strings.ReplaceAll(bare, "\t", " "), " "); commented && verbs[strings.ToUpper(word)] {
				return nil, nil, ambiguous{i + 1, "an instruction's name after a comment inside another instruction"}
			}
			next, more = continued(next)
			joined += next
		}
		in, err := newInstruction(joined, first+1)
		if err != nil {
			return nil, nil, err
		}
		in.Last = i + 1
		all = append(all, in)
	}
	return all, directives, nil
}

// plainLine returns a line without its end. Characters that readers disagree about are an error.
func plainLine(line string, index int) (string, error) {
	line = strings.TrimSuffix(line, "\r")
	for _, r := range line {
		if r != '\t' && (unicode.IsControl(r) || r == '\u2028' || r == '\u2029') {
			return "", ambiguous{index + 1, "a control character"}
		}
	}
	bare := strings.TrimLeft(line, " \t")
	if r, _ := utf8.DecodeRuneInString(bare); bare != "" && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)) {
		return "", ambiguous{index + 1, "a space that is none of ASCII"}
	}
	if end := strings.TrimRight(line, " \t"); strings.HasSuffix(end, `\\`) {
		return "", ambiguous{index + 1, "two backslashes at its end"}
	}
	return line, nil
}

// continued cuts off the backslash that joins the next line to this one.
func continued(line string) (string, bool) {
	return strings.CutSuffix(strings.TrimRight(line, " \t"), `\`)
}

func newInstruction(text string, line int) (Instruction, error) {
	text = strings.TrimSpace(text)
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		end = len(text)
	}
	in := Instruction{Line: line, Last: line, Verb: strings.ToUpper(text[:end]), Args: strings.TrimSpace(text[end:])}
	if !verbs[in.Verb] {
		return in, ambiguous{line, "the instruction " + quoted(short(text[:end])) + " is unknown"}
	}
	for strings.HasPrefix(in.Args, "--") {
		end := strings.IndexFunc(in.Args, unicode.IsSpace)
		if end < 0 {
			end = len(in.Args)
		}
		word := in.Args[2:end]
		if word == "" || strings.ContainsAny(word, `'"\`) {
			return in, ambiguous{line, "an option with quotes or without a name"}
		}
		name, value, _ := strings.Cut(word, "=")
		in.Flags = append(in.Flags, Flag{strings.ToLower(name), value})
		in.Args = strings.TrimSpace(in.Args[end:])
	}
	switch in.Verb {
	case "RUN", "COPY", "ADD", "ONBUILD":
		if heredoc.MatchString(in.Args) {
			return in, ambiguous{line, "a here-document"}
		}
	}
	return in, nil
}
