package profile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxInside limits, in bytes, what is expanded inside, since each command carries it.
const maxInside = 32 << 10

// term is text or, if ref is set, a reference to the variable of that name.
type term struct{ text, ref string }

// parseEnv splits a value of toolchain.env: ${NAME} is a reference, $$ a dollar sign. Any other dollar
// sign is refused rather than taken as text.
func parseEnv(value string) ([]term, error) {
	var out []term
	for value != "" {
		before, rest, found := strings.Cut(value, "$")
		if before != "" {
			out = append(out, term{text: before})
		}
		switch {
		case !found:
			return out, nil
		case strings.HasPrefix(rest, "$"):
			out, value = append(out, term{text: "$"}), rest[1:]
		case strings.HasPrefix(rest, "{"):
			name, after, closed := strings.Cut(rest[1:], "}")
			if !closed || CheckEnvName(name) != nil {
				return nil, invalid("%s is not a reference to a variable: want ${NAME} with letters, digits and _, or $$ for a dollar sign",
					quoted("$"+rest))
			}
			out, value = append(out, term{ref: name}), after
		default:
			return nil, invalid("%s: want ${NAME} for the value of a variable, or $$ for a dollar sign", quoted("$"+rest))
		}
	}
	return out, nil
}

func checkVariable(name, value string) error {
	if err := checkEnv(name, value); err != nil {
		return err
	}
	if _, err := parseEnv(value); err != nil {
		return invalid("the value of %s: %s", name, strictyaml.Message(err))
	}
	return nil
}

// variables checks one file's toolchain.env.
func (c *checker) variables(env map[string]string, path ...string) {
	before := len(c.errs)
	c.pairs(env, checkVariable, path...)
	if len(c.errs) > before {
		return
	}
	if _, err := (variables{}).with(env, "env"); err != nil {
		c.fail(append(slices.Clone(path), err.variable), "%s", err.msg)
	}
}

// inheritEnv merges a parent's toolchain.env under its child's. A child's reference to the variable itself
// is the parent's value. A value that grows too long is cut just above the limit, so that composing
// refuses it.
func inheritEnv(parent, child map[string]string) map[string]string {
	out := maps.Clone(parent)
	for name, value := range child {
		was, inherited := parent[name]
		terms, err := parseEnv(value)
		if !inherited || err != nil || !refers(value, name) {
			out[name] = value
			continue
		}
		var b strings.Builder
		for _, t := range terms {
			if t.ref == name {
				b.WriteString(was)
			} else {
				b.WriteString(t.written())
			}
			if b.Len() > maxText {
				break
			}
		}
		out[name] = b.String()[:min(b.Len(), maxText+1)]
	}
	return out
}

// refers reports whether value refers to the variable name.
func refers(value, name string) bool {
	terms, err := parseEnv(value)
	return err == nil && slices.ContainsFunc(terms, func(t term) bool { return t.ref == name })
}

func (t term) written() string {
	if t.ref != "" {
		return "${" + t.ref + "}"
	}
	return strings.ReplaceAll(t.text, "$", "$$")
}

// quotedInside returns the term as part of a /bin/sh word.
func (t term) quotedInside() string {
	if t.ref != "" {
		return `"${` + t.ref + `-}"`
	}
	return "'" + strings.ReplaceAll(t.text, "'", `'\''`) + "'"
}

func each(terms []term, form func(term) string) string {
	var b strings.Builder
	for _, t := range terms {
		b.WriteString(form(t))
	}
	return b.String()
}

// variables are those of a toolchain composed so far. References left in them are to variables of the
// sandbox itself.
type variables map[string][]term

// composeEnv joins the variables of kits, in their order, and then those of the profile, which by names.
func composeEnv(kits []*Kit, own map[string]string, by string) (variables, *kitError) {
	so, owner := variables{}, map[string]string{}
	for _, k := range kits {
		next, err := so.with(k.Env, k.Ref())
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(k.Env)) {
			was, set := so[name]
			value, said := own[name]
			decided := said && !refers(value, name)
			if set && !decided && !refers(k.Env[name], name) && each(was, term.written) != each(next[name], term.written) {
				return nil, &kitError{msg: owner[name] + " and " + k.Ref() + " set " + name + " to different values",
					remedy: "set it in toolchain.env of the profile, or extend it in one kit with ${" + name + "}"}
			}
			owner[name] = k.Ref()
		}
		so = next
	}
	return so.with(own, by)
}

// with returns v extended by the variables of one file, which by names. In the file, a variable's own name
// means its previous value; another name means the file's value for it, or else its previous value.
func (v variables) with(env map[string]string, by string) (variables, *kitError) {
	l := layer{env: env, before: v, by: by, done: variables{}}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if _, err := l.value(name); err != nil {
			return nil, err
		}
	}
	out := maps.Clone(v)
	maps.Copy(out, l.done)
	return out, nil
}

// layer is one file's variables while they are laid over the previous ones.
type layer struct {
	env          map[string]string
	before, done variables
	by           string
	path         []string // chain of references being resolved
}

func (l *layer) value(name string) ([]term, *kitError) {
	if v, known := l.done[name]; known {
		return v, nil
	}
	if i := slices.Index(l.path, name); i >= 0 {
		return nil, &kitError{variable: name, msg: l.by + ": variables refer to each other: " +
			strings.Join(append(slices.Clone(l.path[i:]), name), " -> ")}
	}
	long := &kitError{variable: name, msg: l.by + ": the value of " + name + " has more than " + strconv.Itoa(maxText) +
		" bytes once expanded"}
	if len(l.env[name]) > maxText {
		return nil, long
	}
	terms, malformed := parseEnv(l.env[name])
	if malformed != nil {
		return nil, &kitError{variable: name, msg: l.by + ": the value of " + name + ": " + strictyaml.Message(malformed)}
	}
	l.path = append(l.path, name)
	out, size := []term{}, 0
	for _, t := range terms {
		put := []term{t}
		if t.ref != "" {
			var err *kitError
			if put, err = l.refer(name, t.ref); err != nil {
				return nil, err
			}
		}
		out = append(out, put...)
		for _, p := range put {
			size += len(p.written())
		}
		if size > maxText {
			return nil, long
		}
	}
	l.path = l.path[:len(l.path)-1]
	l.done[name] = out
	return out, nil
}

// refer returns what a reference in the value of name stands for.
func (l *layer) refer(name, ref string) ([]term, *kitError) {
	if _, own := l.env[ref]; own && ref != name {
		return l.value(ref)
	}
	if v, set := l.before[ref]; set {
		return v, nil
	}
	return []term{{ref: ref}}, nil
}

// put divides v into what every program inside gets and what each command expands there. A variable that
// another one refers to as the sandbox's own is expanded too: set for every program, it would hide the
// sandbox's value.
func (v variables) put(t *extensions.Toolchain) *kitError {
	inside := map[string]bool{}
	for name, terms := range v {
		for _, x := range terms {
			if x.ref != "" {
				inside[name], inside[x.ref] = true, true
			}
		}
	}
	size := 0
	for name, terms := range v {
		if !inside[name] {
			if t.Env == nil {
				t.Env = map[string]string{}
			}
			t.Env[name] = each(terms, func(x term) string { return x.text })
			continue
		}
		if t.EnvInside == nil {
			t.EnvInside = map[string]string{}
		}
		t.EnvInside[name] = "''" + each(terms, term.quotedInside)
		size += len(name) + len(t.EnvInside[name])
	}
	if size > maxInside {
		return &kitError{msg: "the variables with references are " + strconv.Itoa(size) + " bytes; at most " + strconv.Itoa(maxInside) +
			" are accepted",
			remedy: "set long values without ${NAME}"}
	}
	return nil
}
