package e2b

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/e2b/internal/api"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

//go:embed sh/*.sh
var shellFiles embed.FS

var scripts = &shtext.Files{FS: shellFiles}

// contextDir is where a build's context lies while it is built. What is in /tmp the vendor may lose between steps.
const contextDir = "/.sandboxer/context"

// recipe is a Dockerfile as steps of the vendor's builder, which knows ENV, WORKDIR, USER, RUN, and COPY of one
// uploaded archive.
type recipe struct {
	steps []api.TemplateStep
	vars  map[string]string // what ARG and ENV have set so far
	args  map[string]string // those of ARG, which only the build sees
	given map[string]string // the arguments of the build
	dir   string
	moved bool // the Dockerfile chose the folder
	user  string
	files bool // the context is needed and must be uploaded
	line  int
	notes []string // what has no effect
}

// translate turns a build that was judged into a recipe.
func translate(b compose.Build) (*recipe, error) {
	r := &recipe{vars: map[string]string{}, args: map[string]string{}, given: b.Args, dir: "/"}
	r.add("USER", "root")
	r.add("WORKDIR", "/")
	stages := 0
	for _, in := range b.Instructions {
		if r.line = in.Line; in.Verb == "FROM" {
			stages++
		}
		if err := r.take(in); err != nil {
			return nil, err
		}
	}
	switch name := lastWord(b); {
	case stages > 1:
		return nil, r.cannot("a Dockerfile with several FROM").WithRemedy("split it into image.stages, each with its own Dockerfile")
	case b.Target != "" && !strings.EqualFold(b.Target, name):
		return nil, r.wrong("the target %q is no stage of it", extensions.Clean(b.Target, 80))
	}
	for _, base := range append([]compose.Base{{Platform: b.Platform}}, b.Bases...) {
		if p := base.Platform; p != "" && p != "linux" && p != "linux/amd64" {
			return nil, r.cannot("images for " + extensions.Clean(p, 40))
		}
	}
	if r.files {
		r.run("root", "rm -rf /.sandboxer")
	}
	if r.user == "" { // as the vendor's own translation does
		r.add("USER", "user")
	}
	if !r.moved {
		r.add("WORKDIR", "/home/user")
	}
	return r, nil
}

// lastWord is the name of the only stage, if it has one.
func lastWord(b compose.Build) string {
	i := slices.IndexFunc(b.Instructions, func(in compose.Instruction) bool { return in.Verb == "FROM" })
	if i < 0 {
		return ""
	}
	words := strings.Fields(b.Instructions[i].Args)
	return words[len(words)-1]
}

func (r *recipe) add(kind string, args ...string) {
	r.steps = append(r.steps, api.TemplateStep{Type: kind, Args: &args})
}

// run adds a command, as a user ("" = the one of the Dockerfile), with the arguments of the build.
func (r *recipe) run(as, command string) {
	var set strings.Builder
	for _, name := range sortedKeys(r.args) {
		set.WriteString("export " + name + "=" + shtext.Quote(r.args[name]) + "; ")
	}
	args := []string{set.String() + command}
	if as != "" {
		args = append(args, as)
	}
	r.add("RUN", args...)
}

func (r *recipe) cannot(what string) *extensions.Error {
	return r.fault(extensions.KindUnsupported, "%s cannot build %s", vendor, what).
		WithRemedy("build the image elsewhere and pull it, or choose another place")
}

func (r *recipe) wrong(format string, args ...any) *extensions.Error {
	return r.fault(extensions.KindInvalid, format, args...).WithRemedy("correct the Dockerfile")
}

func (r *recipe) fault(kind extensions.Kind, format string, args ...any) *extensions.Error {
	return extensions.Errorf(kind, "line %d of the Dockerfile: "+format, append([]any{r.line}, args...)...).At("image.build")
}

func (r *recipe) take(in compose.Instruction) error {
	switch in.Verb {
	case "FROM", "CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER":
		return nil // FROM is the template's base; what runs is asked for, and the others do nothing anywhere
	case "STOPSIGNAL", "VOLUME", "HEALTHCHECK":
		r.notes = append(r.notes, fmt.Sprintf("line %d of the Dockerfile: %s has no meaning for %s", in.Line, in.Verb, vendor))
		return nil
	case "ARG":
		return r.arg(in.Args)
	case "ENV":
		return r.env(in.Args)
	case "WORKDIR":
		return r.workDir(in.Args)
	case "USER":
		who, err := r.one(in.Args)
		if err == nil && !userName.MatchString(who) {
			err = r.cannot("the user " + extensions.Clean(who, 80))
		}
		if err == nil {
			r.user = who
			r.add("USER", who)
		}
		return err
	case "RUN":
		command := in.Args
		if argv, ok := list(command); ok {
			for i, word := range argv {
				argv[i] = shtext.Quote(word)
			}
			command = strings.Join(argv, " ")
		}
		r.run("", command)
		return nil
	case "COPY", "ADD":
		return r.copy(in)
	}
	return r.cannot(in.Verb)
}

// list reads the JSON form of an instruction.
func list(args string) (words []string, ok bool) {
	return words, strings.HasPrefix(args, "[") && json.Unmarshal([]byte(args), &words) == nil && len(words) > 0
}

func (r *recipe) arg(text string) error {
	words, err := r.words(text, false)
	for _, w := range words {
		name, value, set := strings.Cut(w, "=")
		if given, ok := r.given[name]; ok {
			value = given
		} else if !set { // of one before FROM
			value = r.vars[name]
		}
		r.vars[name], r.args[name] = value, value
	}
	return err
}

func (r *recipe) env(text string) error {
	name, value, old := strings.Cut(text, " ")
	if old = old && !strings.Contains(name, "="); old { // ENV NAME the rest
		text = name + "=" + strings.ReplaceAll(strings.TrimSpace(value), " ", `\ `)
	}
	words, err := r.words(text, true)
	if err != nil {
		return err
	}
	var args []string
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok || !extensions.ValidEnvName(name) {
			return r.wrong("ENV of %q", extensions.Clean(w, 80))
		}
		r.vars[name] = value
		delete(r.args, name)
		args = append(args, name, printed(value))
	}
	r.add("ENV", args...)
	return nil
}

var unknownName = regexp.MustCompile(unknown + "([A-Za-z0-9_]+)" + unknown)

// printed is a text that the vendor's builder prints as it is, but for unknown variables: it gives it to a shell, in
// double quotes, as the format of printf.
func printed(text string) string {
	text = strings.NewReplacer(`\`, `\\\\`, `%`, `%%`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(text)
	return unknownName.ReplaceAllString(text, "$${$1}")
}

func (r *recipe) workDir(text string) error {
	to, err := r.one(text)
	if err != nil {
		return err
	}
	if !path.IsAbs(to) {
		to = path.Join(r.dir, to)
	}
	if to = path.Clean(to); !plain.MatchString(to) {
		return r.cannot("the folder " + extensions.Clean(to, 80))
	}
	r.dir, r.moved = to, true
	r.add("WORKDIR", to)
	return nil
}

var (
	plain    = regexp.MustCompile(`^/[A-Za-z0-9_./@+:,=-]*$`) // what needs no quotes in a shell
	userName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)
