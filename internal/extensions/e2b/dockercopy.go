package e2b

import (
	"path"
	"regexp"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

var (
	archive = regexp.MustCompile(`(?i)\.(?:tar|tgz|tbz2?|txz|gz|bz2|xz|zst)$`)
	octal   = regexp.MustCompile(`^[0-7]{3,4}$`)
	owners  = regexp.MustCompile(`^[A-Za-z0-9_.-]+(?::[A-Za-z0-9_.-]+)?$`)
)

// copy does a COPY by a command: the vendor's own takes one folder or file only. ADD is COPY where it neither fetches
// nor unpacks.
func (r *recipe) copy(in compose.Instruction) error {
	words, ok := list(in.Args)
	var err error
	if !ok {
		words, err = r.words(in.Args, false)
	} else {
		for i := range words {
			if words[i], err = r.expand(words[i], false); err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	if len(words) < 2 {
		return r.wrong("%s needs a source and a destination", in.Verb)
	}
	owner, mode := "root:root", ""
	for _, f := range in.Flags {
		value, err := r.expand(f.Value, false)
		switch {
		case err != nil:
			return err
		case f.Name == "chown" && owners.MatchString(value):
			owner = value
		case f.Name == "chmod" && octal.MatchString(value):
			mode = value
		case f.Name == "link":
		default:
			return r.cannot(in.Verb + " with --" + f.Name)
		}
	}
	to := words[len(words)-1]
	command := []string{shtext.Quote(owner), shtext.Quote(mode), shtext.Quote(to)}
	for _, from := range words[:len(words)-1] {
		if in.Verb == "ADD" && (strings.Contains(from, "://") || strings.HasPrefix(from, "git@") || archive.MatchString(from)) {
			return r.cannot("ADD of an address or an archive")
		}
		clean := strings.TrimPrefix(path.Clean("/"+from), "/")
		command = append(command, globbed(clean))
	}
	if !r.files {
		r.files = true
		r.add("COPY", ".", contextDir, "root", "")
		r.run("root", "rm -f "+contextDir+"/.dockerignore "+contextDir+"/"+compose.ContextDockerfile)
	}
	// The shell looks for the sources in the context, and the program works in the folder that WORKDIR names.
	r.run("root", "copy() {\n"+shtext.Join([]*shtext.Files{scripts}, "copy")+"}\nhere=$PWD; cd "+contextDir+" || exit; IFS=; set -- "+
		strings.Join(command, " ")+"; unset IFS; cd \"$here\" || exit; copy \"$@\"")
	return nil
}

// globbed is a pattern of names for a shell, which takes the rest of it as it is.
func globbed(pattern string) string {
	if pattern == "" {
		return "."
	}
	parts := wild.FindAllStringIndex(pattern, -1)
	var out strings.Builder
	at := 0
	for _, p := range append(parts, []int{len(pattern), len(pattern)}) {
		if at < p[0] {
			out.WriteString(shtext.Quote(pattern[at:p[0]]))
		}
		out.WriteString(pattern[p[0]:p[1]])
		at = p[1]
	}
	return out.String()
}

var wild = regexp.MustCompile(`[*?\[\]]+`)
