package compose

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// envFile adds the variables of a file in the bundle to into. Its values see env, then what is already in
// into.
func (l *loading) envFile(name, where, format string, into, env map[string]string) error {
	if l.files++; l.files > maxFiles {
		return l.stop("too-large", where, fmt.Errorf("the stack reads more than %d files", maxFiles))
	}
	data, err := l.bundle.readFile(l.ctx, name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch format {
	case "", ".env":
		err = parseEnvFile(string(data), into, l.expander(where+": "+name, env, into))
	case "raw":
		err = parseRawEnvFile(string(data), into)
	default:
		err = fmt.Errorf("the format %s is unknown", quoted(format))
	}
	if errors.Is(err, errExpands) {
		return l.stop("too-large", where+": "+name, err)
	}
	if err != nil {
		return l.stop("schema", where+": "+name, err)
	}
	return nil
}

// resolveEnvironments puts env and label files into their services, and removes variables that have no value
// and that nobody sets.
func (l *loading) resolveEnvironments(p *types.Project, env map[string]string) error {
	for _, group := range []types.Services{p.Services, p.DisabledServices} {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			s := group[name]
			where := "services." + name
			if err := l.containerEnv(&s.ContainerSpec, where, env); err != nil {
				return err
			}
			for i := range s.PostStart {
				l.passThrough(s.PostStart[i].Environment, fmt.Sprintf("%s.post_start[%d].environment", where, i))
			}
			for i := range s.PreStop {
				l.passThrough(s.PreStop[i].Environment, fmt.Sprintf("%s.pre_stop[%d].environment", where, i))
			}
			group[name] = s
		}
	}
	for name, s := range p.Secrets {
		if s.Environment != "" && !l.secrets[s.Environment] {
			s.Content = l.fileValue(s.Environment, "secrets."+name, env)
		}
		p.Secrets[name] = s
	}
	for name, c := range p.Configs {
		if c.Environment == "" {
			continue
		}
		if l.secrets[c.Environment] {
			l.found.refuse("interpolate-secret", "configs."+name, "the secret "+c.Environment+" would be a config")
		} else {
			c.Content = l.fileValue(c.Environment, "configs."+name, env)
		}
		c.Environment = ""
		p.Configs[name] = c
	}
	return nil
}

func (l *loading) fileValue(name, where string, env map[string]string) string {
	v, ok := env[name]
	if !ok {
		l.found.unset(name, where, "the variable "+name+" is set nowhere")
	}
	return v
}

func (l *loading) containerEnv(s *types.ContainerSpec, where string, env map[string]string) error {
	vars := map[string]string{}
	seen := maps.Clone(env)
	for k, v := range s.Environment {
		if _, ok := seen[k]; !ok && v != nil {
			seen[k] = *v
		}
	}
	for i, f := range s.EnvFiles {
		at := fmt.Sprintf("%s.env_file[%d]", where, i)
		name, ok := l.named(f.Path, "env-file-outside", at, bool(f.Required))
		if !ok {
			continue
		}
		if err := l.envFile(name, at, f.Format, vars, seen); err != nil {
			return err
		}
	}
	l.passThrough(s.Environment, where+".environment")
	s.EnvFiles = nil
	for k, v := range vars {
		if s.Environment == nil {
			s.Environment = types.MappingWithEquals{}
		}
		if _, ok := s.Environment[k]; !ok {
			s.Environment[k] = &v
		}
	}
	labels := map[string]string{}
	for i, f := range s.LabelFiles {
		at := fmt.Sprintf("%s.label_file[%d]", where, i)
		name, ok := l.named(f, "label-file-outside", at, true)
		if !ok {
			continue
		}
		if err := l.envFile(name, at, "", labels, nil); err != nil {
			return err
		}
	}
	s.LabelFiles = nil
	for k, v := range labels {
		if s.Labels == nil {
			s.Labels = types.Labels{}
		}
		if _, ok := s.Labels[k]; !ok {
			s.Labels[k] = v
		}
	}
	return nil
}

// named finds the file that a path of the loaded model leads to.
func (l *loading) named(p, rule, where string, required bool) (string, bool) {
	name, e, err := l.inBundle(p)
	switch {
	case errors.Is(err, errMissing), err == nil && (e == nil || e.Type != TypeFile):
		if required {
			l.found.refuse("file-missing", where, quoted(shown(p))+" is no file of the bundle")
		}
	case err != nil:
		l.found.refuse(rule, where, fmt.Sprintf("%s: %v", quoted(shown(p)), err))
	case e.Size > MaxFile:
		l.found.refuse("too-large", where, fmt.Sprintf("%s: %v", quoted(shown(p)), errTooLarge))
	default:
		return name, true
	}
	return "", false
}

// passThrough allows names without a value only for secrets; Compose would fill others from the environment
// of whoever runs it.
func (l *loading) passThrough(env types.MappingWithEquals, where string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if env[name] == nil && !l.secrets[name] {
			l.found.unset(name, where, "the variable "+extensions.Clean(name, 60)+" has no value and is set nowhere")
			delete(env, name)
		}
	}
}
