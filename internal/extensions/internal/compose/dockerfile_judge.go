package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/ociimage"
)

// Base is the image that a build stage starts from, as the Dockerfile and the build's arguments name it. The
// host inspects it before building, since its orders for builds on it (ONBUILD) and its labels are not
// visible here.
type Base struct {
	Image    string
	Platform string // "" = the build's
}

// judging is what is known while a Dockerfile is read from its start.
type judging struct {
	found  *findings
	where  string // service and file
	build  Build
	alone  bool              // the build has no network
	parent string            // tag of the image that an earlier build creates, "" = none
	args   map[string]string // those before the first FROM
	onto   bool              // an instruction takes the image of parent_tag
	stages []string          // names of the stages so far, "" if unnamed
	bases  []Base
}

// official is the frontend that adds nothing to what is known here.
var official = regexp.MustCompile(`^(?:docker\.io/)?docker/dockerfile(?::[A-Za-z0-9_.-]+)?(?:@sha256:[0-9a-f]{64})?$`)

// judgeDockerfile finds everything that a Dockerfile is refused for, and the images it starts from. If the
// build has no network, the daemon, which has one, must not fetch anything the file names. Base images are
// exempt; they are pulled as those of services are. It also returns what it has read.
func judgeDockerfile(found *findings, where, text string, b Build) ([]Base, []Instruction) {
	found.file = b.Dockerfile
	defer func() { found.file = "" }()
	j := &judging{found: found, where: where, build: b, alone: b.Network == "none", args: map[string]string{}}
	if b.Parent != "" {
		j.parent = b.Args[ArgParentTag]
	}
	all, directives, err := parseDockerfile(text)
	if err != nil {
		var a ambiguous
		if errors.As(err, &a) {
			j.refuse("dockerfile", a.line, a.why)
		}
		return nil, nil
	}
	for _, name := range sortedKeys(directives) {
		if value := directives[name]; name == "check" && value != "none" || name == "syntax" && (j.alone || !official.MatchString(value)) {
			j.refuse("build-frontend", 1, name+"="+value)
		}
	}
	for _, in := range all {
		j.instruction(in)
	}
	if len(j.stages) == 0 {
		j.refuse("dockerfile", 1, "there is no FROM")
	}
	if b.onto != "" && !j.onto {
		j.refuse("dockerfile", 1, "nothing in it starts from parent_tag, "+quoted(short(b.onto)))
	}
	return j.bases, all
}

func (j *judging) refuse(rule string, line int, found string) {
	where := fmt.Sprintf("%s:%d", j.where, line)
	if rule == "build-fetch" {
		j.found.record(rule, where, found, "options."+j.found.binding+`.build_network: "default"`)
		return
	}
	j.found.refuse(rule, where, found)
}

func (j *judging) instruction(in Instruction) {
	if len(j.stages) == 0 && in.Verb != "FROM" && in.Verb != "ARG" {
		j.refuse("dockerfile", in.Line, in.Verb+" before the first FROM")
	}
	j.options(in)
	switch in.Verb {
	case "FROM":
		j.from(in)
	case "ARG":
		if len(j.stages) == 0 {
			j.arg(in)
		}
	case "ADD":
		j.add(in)
	case "LABEL":
		j.label(in)
	case "ONBUILD":
		inner, err := newInstruction(in.Args, in.Line)
		switch {
		case err != nil:
			j.refuse("dockerfile", in.Line, "ONBUILD of what cannot be read")
		case inner.Verb == "ONBUILD" || inner.Verb == "FROM" || inner.Verb == "MAINTAINER":
			j.refuse("dockerfile", in.Line, "ONBUILD "+inner.Verb)
		default:
			j.instruction(inner)
		}
	}
}

// known are the options that reach nothing outside the build.
var known = map[string][]string{
	"FROM": {"platform"}, "ADD": {"chown", "chmod", "link", "exclude", "checksum", "keep-git-dir", "unpack"},
	"COPY":        {"chown", "chmod", "link", "from", "parents", "exclude"},
	"HEALTHCHECK": {"interval", "timeout", "start-period", "start-interval", "retries"},
}

func (j *judging) options(in Instruction) {
	for _, f := range in.Flags {
		switch {
		case in.Verb == "RUN":
			j.refuse("build-mount", in.Line, "RUN --"+f.Name)
		case !slices.Contains(known[in.Verb], f.Name):
			j.refuse("dockerfile", in.Line, fmt.Sprintf("the option --%s of %s is unknown", f.Name, in.Verb))
		case f.Name == "from":
			j.copyFrom(in.Line, f.Value)
		}
	}
}

// copyFrom accepts earlier stages and the image of an earlier build; the daemon would fetch anything else.
func (j *judging) copyFrom(line int, from string) {
	if n, err := strconv.Atoi(from); err == nil && n >= 0 && n < len(j.stages)-1 {
		return
	}
	j.takes(from)
	if j.earlier(from) || from != "" && from == j.parent {
		return
	}
	if ociimage.Reserved(from) {
		j.refuse("reserved-image", line, "--from="+from)
	} else if j.alone || !baseForm.MatchString(from) || ociimage.IsID(from) {
		j.refuse("build-fetch", line, "--from="+from+" is no earlier stage")
	} else {
		j.base(Base{Image: from})
	}
}

// takes notes that an instruction takes the image of parent_tag.
func (j *judging) takes(image string) {
	j.onto = j.onto || image != "" && image == j.build.Args[ArgParentTag]
}

// earlier reports whether a stage before the current one has the name.
func (j *judging) earlier(name string) bool {
	return name != "" && len(j.stages) > 0 && slices.Contains(j.stages[:len(j.stages)-1], strings.ToLower(name))
}

func (j *judging) from(in Instruction) {
	words := strings.Fields(in.Args)
	name := ""
	if len(words) == 3 && strings.EqualFold(words[1], "AS") {
		name = strings.ToLower(words[2])
	} else if len(words) != 1 {
		j.refuse("dockerfile", in.Line, "FROM is neither an image nor an image AS a name")
		return
	}
	j.stages = append(j.stages, name)
	image, err := expandArgs(words[0], j.args)
	if err != nil {
		j.refuse("dockerfile", in.Line, err.Error())
		return
	}
	j.takes(image)
	b := Base{Image: image}
	for _, f := range in.Flags {
		if b.Platform, err = expandArgs(f.Value, j.args); err != nil || !platformForm.MatchString(b.Platform) {
			j.refuse("dockerfile", in.Line, "the platform "+quoted(f.Value))
			return
		}
	}
	switch {
	case image == "scratch", image == j.parent && image != "", j.earlier(image):
	case !baseForm.MatchString(image), ociimage.IsID(image):
		j.refuse("dockerfile", in.Line, "the image "+quoted(image))
	case ociimage.Reserved(image):
		j.refuse("reserved-image", in.Line, "FROM "+image)
	default:
		j.base(b)
	}
}

// base notes an image that must exist under its name before anything is built.
func (j *judging) base(b Base) {
	b.Image = ociimage.ByName(b.Image)
	if !slices.Contains(j.bases, b) {
		j.bases = append(j.bases, b)
	}
}

var (
	platformForm = regexp.MustCompile(`^[a-z0-9]+(?:/[a-z0-9]+){0,2}$`)
	baseForm     = regexp.MustCompile(`^[A-Za-z0-9\[][A-Za-z0-9._:/@\[\]-]*$`)
	argForm      = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)(?:=(.*))?$`)
	variableForm = regexp.MustCompile(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)(?:(:[-+])([^${}]*))?\})`)
)

// arg notes what FROM may use: the build's argument, else the default.
func (j *judging) arg(in Instruction) {
	for _, word := range strings.Fields(in.Args) {
		m := argForm.FindStringSubmatch(word)
		if m == nil {
			j.refuse("dockerfile", in.Line, "the argument "+quoted(short(word)))
			return
		}
		if given, ok := j.build.Args[m[1]]; ok {
			j.args[m[1]] = given
		} else if value, err := expandArgs(unquoted(m[2]), j.args); err == nil {
			j.args[m[1]] = value
		} // else FROM may not use it
	}
}

// unquoted removes one pair of quotes around the whole.
func unquoted(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// expandArgs expands $NAME, ${NAME}, ${NAME:-default} and ${NAME:+other}. Undeclared names, quotes and other
// forms are errors.
func expandArgs(s string, args map[string]string) (string, error) {
	s = unquoted(s)
	if strings.ContainsAny(s, `'"\`) {
		return "", errors.New("quotes in " + quoted(short(s)))
	}
	var missing error
	out := variableForm.ReplaceAllStringFunc(s, func(v string) string {
		m := variableForm.FindStringSubmatch(v)
		value, ok := args[m[1]+m[2]]
		switch {
		case m[3] == ":-" && value == "", m[3] == ":+" && value != "":
			return m[4]
		case !ok && m[3] == "":
			missing = errors.New("no ARG before the first FROM sets " + m[1] + m[2])
		}
		return value
	})
	// The value of a variable is not expanded again.
	if rest := variableForm.ReplaceAllString(s, ""); missing == nil && strings.Contains(rest, "$") {
		missing = errors.New("a variable in " + quoted(short(s)) + " that cannot be read")
	}
	return out, missing
}

var quotes = strings.NewReplacer(`"`, "", "'", "", `\`, "")

// add refuses fetched sources if the build has no network.
func (j *judging) add(in Instruction) {
	var words []string
	if strings.HasPrefix(in.Args, "[") {
		if err := json.NewDecoder(strings.NewReader(in.Args)).Decode(&words); err != nil {
			j.refuse("dockerfile", in.Line, "ADD of a list that cannot be read")
			return
		}
	} else {
		words = strings.Fields(in.Args)
	}
	if !j.alone {
		return
	}
	words = words[:max(len(words)-1, 0)] // the last is the destination
	for _, f := range in.Flags {
		if f.Name == "checksum" || f.Name == "keep-git-dir" {
			j.refuse("build-fetch", in.Line, "ADD --"+f.Name)
		}
	}
	for _, word := range words {
		// The daemon sees what is left after quotes, escapes and variables.
		word = strings.TrimSpace(quotes.Replace(word))
		head, _, _ := strings.Cut(word, "/")
		if remote(word) || strings.Contains(word, "://") || strings.ContainsAny(head, "$:@") || strings.Contains(word, ".git#") {
			j.refuse("build-fetch", in.Line, "ADD of "+quoted(short(word)))
		}
	}
}

// label refuses names that decide ownership, however they are quoted, and names that only the build will
// know.
func (j *judging) label(in Instruction) {
	for i, word := range strings.Fields(in.Args) {
		key, _, pair := strings.Cut(quotes.Replace(word), "=")
		key = strings.ToLower(key)
		switch {
		case strings.HasPrefix(key, "sandboxer.") || strings.HasPrefix(key, "com.docker."):
			j.refuse("build-label", in.Line, "LABEL "+quoted(short(key)))
		case strings.Contains(key, "$") && (pair || i == 0):
			j.refuse("build-label", in.Line, "a variable in the name of a label, "+quoted(short(key)))
		}
	}
}
