package compose

import (
	"path"
	"reflect"

	"github.com/compose-spec/compose-go/v2/types"
)

// settle removes from a policed model what means nothing on the host: extensions, which nobody reads there,
// names of symbolic links, and custom names of networks and volumes, which could be somebody else's.
func (l *loading) settle(p *types.Project) {
	for _, group := range []types.Services{p.Services, p.DisabledServices} {
		for name, s := range group {
			for i, v := range s.Volumes {
				if v.Type == types.VolumeTypeBind {
					s.Volumes[i].Source = l.real(v.Source)
				}
			}
			if b := s.Build; b != nil {
				b.Context = l.real(b.Context)
				if b.DockerfileInline == "" {
					b.Dockerfile = l.dockerfile(b)
				}
			}
			s.Develop, s.Attach = nil, nil
			group[name] = s
		}
	}
	for name, c := range p.Configs {
		c.Name, c.File = "", l.real(c.File)
		p.Configs[name] = c
	}
	for name, s := range p.Secrets {
		s.Name, s.File = "", l.real(s.File)
		p.Secrets[name] = s
	}
	for name, n := range p.Networks {
		n.Name = ""
		p.Networks[name] = n
	}
	for name, v := range p.Volumes {
		v.Name = ""
		p.Volumes[name] = v
	}
	bare(reflect.ValueOf(p).Elem())
}

// real returns a path that passed the policy, without symbolic links.
func (l *loading) real(p string) string {
	name, _, err := l.inBundle(p)
	if p == "" || err != nil {
		return p
	}
	return path.Join(Root, name)
}

// dockerfile returns the Dockerfile below Root, so that it means the same wherever its build's folder is.
func (l *loading) dockerfile(b *types.BuildConfig) string {
	file := b.Dockerfile
	if file == "" {
		file = "Dockerfile"
	}
	if !path.IsAbs(file) {
		file = path.Join(b.Context, file)
	}
	return l.real(file)
}

// bare clears every extension below v.
func bare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			bare(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			bare(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if e := v.MapIndex(k); e.Kind() == reflect.Struct {
				own := reflect.New(e.Type()).Elem()
				own.Set(e)
				bare(own)
				v.SetMapIndex(k, own)
			} else {
				bare(e)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if f.Type() == reflect.TypeFor[types.Extensions]() && f.CanSet() {
				f.SetZero()
			} else if v.Type().Field(i).IsExported() {
				bare(f)
			}
		}
	default:
		// Nothing lies below any other kind.
	}
}
