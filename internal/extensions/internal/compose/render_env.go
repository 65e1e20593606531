package compose

import (
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
)

// environment gives a service its variables. A name without a value takes the sandbox's own value or is
// dropped: on the host it would come from whoever runs Compose there.
func (r *renderer) environment(own types.MappingWithEquals, target bool) types.MappingWithEquals {
	out := types.MappingWithEquals{}
	for name, value := range own {
		if value == nil {
			value = r.lookup(name)
		}
		if value != nil {
			out[name] = value
		}
	}
	if target {
		for name := range r.o.Env {
			out[name] = r.lookup(name)
		}
		for _, name := range r.out.SecretVars {
			out[name] = r.lookup(name)
		}
	}
	for name, value := range r.o.ProxyEnv {
		if out[name] == nil {
			out[name] = &value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// lookup returns the sandbox's own value of a variable, nil if it has none. A secret delivered as a file is
// not a variable.
func (r *renderer) lookup(name string) *string {
	if variable, ok := r.secrets[name]; ok {
		if r.o.SecretFiles {
			return nil
		}
		value := token(variable)
		return &value
	}
	if value, ok := r.o.Env[name]; ok {
		return &value
	}
	return nil
}

func (r *renderer) hooks(own []types.ServiceHook) []types.ServiceHook {
	out := slices.Clone(own)
	for i := range out {
		out[i].Extensions = nil
		env := types.MappingWithEquals{}
		maps.Copy(env, out[i].Environment)
		for name, value := range env {
			if value == nil {
				if env[name] = r.lookup(name); env[name] == nil {
					delete(env, name)
				}
			}
		}
		out[i].Environment = env
	}
	return out
}
