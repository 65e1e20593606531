package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Base is an image that a build begins a stage with, as the Dockerfile and the
// build's arguments name it. The host looks at it before it builds: what the
// image orders for builds on it (ONBUILD) and its labels are nobody's to see
// here.
type Base struct {
	Image    string
	Platform string // "" = the build's
}

// judging is what is known while a Dockerfile is read from its beginning.
type judging struct {
	found  *findings
	where  string // service and file
	build  Build
	alone  bool              // the build has no network
	parent string            // tag of the image that an earlier build makes, "" = none
	args   map[string]string // of before the first FROM
	stages []string          // names of the stages begun, "" of those without
	bases  []Base
}

// official is the frontend that only says in other words what is known here.
var official = regexp.MustCompile(`^(?:docker\.io/)?docker/dockerfile(?::[A-Za-z0-9_.-]+)?(?:@sha256:[0-9a-f]{64})?$`)

// judgeDockerfile finds everything a Dockerfile is refused for, and the images
// it begins with. Where the build has no network nothing of it may have the
// daemon, which has one, fetch what the file names; base images apart, which are
// pulled as those of services are.
func judgeDockerfile(found *findings, where, text string, b Build) []Base {
	found.file = b.Dockerfile
	defer func() { found.file = "" }()
	j := &judging{found: found, where: where, build: b, alone: b.Network == "none", args: map[string]string{}}
	if b.Parent != "" {
		j.parent = BuildRepository + ":" + b.Parent
	}
	all, directives, err := parseDockerfile(text)
	if err != nil {
		var a ambiguous
		if errors.As(err, &a) {
			j.refuse("dockerfile", a.line, a.why)
		}
		return nil
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
	return j.bases
}

func (j *judging) refuse(rule string, line int, found string) {
	where := fmt.Sprintf("%s:%d", j.where, line)
	if rule == "build-fetch" {
		j.found.record(rule, where, found, `options.ext.compose-ssh.build_network: "default"`)
		return
	}
	j.found.refuse(rule, where, found)
}

func (j *judging) instruction(in instruction) {
	if len(j.stages) == 0 && in.verb != "FROM" && in.verb != "ARG" {
		j.refuse("dockerfile", in.line, in.verb+" before the first FROM")
	}
	j.options(in)
	switch in.verb {
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
		inner, err := newInstruction(in.args, in.line)
		switch {
		case err != nil:
			j.refuse("dockerfile", in.line, "ONBUILD of what cannot be read")
		case inner.verb == "ONBUILD" || inner.verb == "FROM" || inner.verb == "MAINTAINER":
			j.refuse("dockerfile", in.line, "ONBUILD "+inner.verb)
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

func (j *judging) options(in instruction) {
	for _, f := range in.flags {
		switch {
		case in.verb == "RUN":
			j.refuse("build-mount", in.line, "RUN --"+f.name)
		case !slices.Contains(known[in.verb], f.name):
			j.refuse("dockerfile", in.line, fmt.Sprintf("the option --%s of %s is unknown", f.name, in.verb))
		case f.name == "from":
			j.copyFrom(in.line, f.value)
		}
	}
}

// copyFrom lets earlier stages and the image of an earlier build pass; anything
// else would be an image that the daemon fetches.
func (j *judging) copyFrom(line int, from string) {
	if n, err := strconv.Atoi(from); err == nil && n >= 0 && n < len(j.stages)-1 {
		return
	}
	if j.earlier(from) || from != "" && from == j.parent {
		return
	}
	if reservedImage(from) {
		j.refuse("reserved-image", line, "--from="+from)
	} else if j.alone || !baseForm.MatchString(from) || imageID.MatchString(from) {
		j.refuse("build-fetch", line, "--from="+from+" is no earlier stage")
	} else {
		j.base(Base{Image: from})
	}
}

// earlier reports whether a stage before the one that was begun last has the name.
func (j *judging) earlier(name string) bool {
	return name != "" && len(j.stages) > 0 && slices.Contains(j.stages[:len(j.stages)-1], strings.ToLower(name))
}

func (j *judging) from(in instruction) {
	words := strings.Fields(in.args)
	name := ""
	if len(words) == 3 && strings.EqualFold(words[1], "AS") {
		name = strings.ToLower(words[2])
	} else if len(words) != 1 {
		j.refuse("dockerfile", in.line, "FROM is no image, or an image AS a name")
		return
	}
	j.stages = append(j.stages, name)
	image, err := expandArgs(words[0], j.args)
	if err != nil {
		j.refuse("dockerfile", in.line, err.Error())
		return
	}
	b := Base{Image: image}
	for _, f := range in.flags {
		if b.Platform, err = expandArgs(f.value, j.args); err != nil || !platformForm.MatchString(b.Platform) {
			j.refuse("dockerfile", in.line, "the platform "+quoted(f.value))
			return
		}
	}
	switch {
	case image == "scratch", image == j.parent && image != "", j.earlier(image):
	case !baseForm.MatchString(image), imageID.MatchString(image):
		j.refuse("dockerfile", in.line, "the image "+quoted(image))
	case reservedImage(image):
		j.refuse("reserved-image", in.line, "FROM "+image)
	default:
		j.base(b)
	}
}

// base notes an image that must be there, by its name, before anything is built.
func (j *judging) base(b Base) {
	b.Image = byName(b.Image)
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
func (j *judging) arg(in instruction) {
	for _, word := range strings.Fields(in.args) {
		m := argForm.FindStringSubmatch(word)
		if m == nil {
			j.refuse("dockerfile", in.line, "the argument "+quoted(short(word)))
			return
		}
		if given, ok := j.build.Args[m[1]]; ok {
			j.args[m[1]] = given
		} else if value, err := expandArgs(unquoted(m[2]), j.args); err == nil {
			j.args[m[1]] = value
		} // else FROM may not use it
	}
}

// unquoted takes one pair of quotes off that is around the whole.
func unquoted(s string) string {
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// expandArgs fills in $NAME, ${NAME}, ${NAME:-default} and ${NAME:+other}.
// Names that no ARG declared, quotes and other forms are errors.
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
	// What comes from a variable is not looked at again.
	if rest := variableForm.ReplaceAllString(s, ""); missing == nil && strings.Contains(rest, "$") {
		missing = errors.New("a variable in " + quoted(short(s)) + " that cannot be read")
	}
	return out, missing
}

var quotes = strings.NewReplacer(`"`, "", "'", "", `\`, "")

// add refuses sources that are fetched, where the build has no network.
func (j *judging) add(in instruction) {
	var words []string
	if strings.HasPrefix(in.args, "[") {
		if err := json.NewDecoder(strings.NewReader(in.args)).Decode(&words); err != nil {
			j.refuse("dockerfile", in.line, "ADD of a list that cannot be read")
			return
		}
	} else {
		words = strings.Fields(in.args)
	}
	if !j.alone {
		return
	}
	words = words[:max(len(words)-1, 0)] // the last is where to
	for _, f := range in.flags {
		if f.name == "checksum" || f.name == "keep-git-dir" {
			j.refuse("build-fetch", in.line, "ADD --"+f.name)
		}
	}
	for _, word := range words {
		// The daemon looks at what is left after quotes, escapes and variables.
		word = strings.TrimSpace(quotes.Replace(word))
		head, _, _ := strings.Cut(word, "/")
		if remote(word) || strings.Contains(word, "://") || strings.ContainsAny(head, "$:@") || strings.Contains(word, ".git#") {
			j.refuse("build-fetch", in.line, "ADD of "+quoted(short(word)))
		}
	}
}

// label refuses names that decide about ownership, however they are quoted, and
// those that only the build will know.
func (j *judging) label(in instruction) {
	for i, word := range strings.Fields(in.args) {
		key, _, pair := strings.Cut(quotes.Replace(word), "=")
		key = strings.ToLower(key)
		switch {
		case strings.HasPrefix(key, "sandboxer.") || strings.HasPrefix(key, "com.docker."):
			j.refuse("build-label", in.line, "LABEL "+quoted(short(key)))
		case strings.Contains(key, "$") && (pair || i == 0):
			j.refuse("build-label", in.line, "a variable in the name of a label, "+quoted(short(key)))
		}
	}
}
