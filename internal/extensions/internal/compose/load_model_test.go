package compose

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// unpack writes a bundle to a folder, without what is larger than MaxFile.
func unpack(t *testing.T, b *Bundle) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range b.below(".") {
		e, at := b.entries[name], filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		switch e.Type {
		case TypeDir:
			err = os.MkdirAll(at, 0o700)
		case TypeSymlink:
			err = os.Symlink(e.Link, at)
		case TypeFile:
			var data []byte
			if data, err = b.ReadFile(name); err == nil {
				err = os.WriteFile(at, data, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// library loads the stack as Compose does: the library reads the files itself.
func library(t *testing.T, in Input, b *Bundle, dir string) *types.Project {
	t.Helper()
	files := in.Files
	if len(files) == 0 {
		files = []string{"compose.yaml"}
	}
	details := types.ConfigDetails{WorkingDir: filepath.Join(dir, path.Dir(files[0])), Environment: types.Mapping{}}
	for _, f := range files {
		details.ConfigFiles = append(details.ConfigFiles, types.ConfigFile{Filename: filepath.Join(dir, f)})
	}
	maps.Copy(details.Environment, in.Env)
	if data, err := b.ReadFile(path.Join(path.Dir(files[0]), ".env")); err == nil {
		vars, err := dotenv.ParseWithLookup(strings.NewReader(string(data)), nil)
		if err != nil {
			t.Fatal(err)
		}
		details.Environment.Merge(vars)
	}
	p, err := loader.LoadWithContext(t.Context(), details, func(o *loader.Options) {
		o.SetProjectName(projectName, true)
		o.Profiles = in.Profiles
	}, loader.WithDiscardEnvFiles)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// asTree is the model as a tree, without what Load takes out on purpose.
func asTree(t *testing.T, p *types.Project, root string) map[string]any {
	t.Helper()
	for name, s := range p.Services {
		if s.Build != nil && s.Build.DockerfileInline == "" && !path.IsAbs(s.Build.Dockerfile) {
			s.Build.Dockerfile = path.Join(s.Build.Context, s.Build.Dockerfile)
		}
		s.Develop = nil
		p.Services[name] = s
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var model map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), root, "/ROOT")), &model); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"networks", "volumes", "configs", "secrets"} {
		all, _ := model[kind].(map[string]any)
		for _, e := range all {
			delete(e.(map[string]any), "name")
		}
	}
	return model
}

func TestAStackMeansWhatComposeReads(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/good/*.txtar")
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			in := readStack(t, file).in
			p, err := Load(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			dir := unpack(t, p.Bundle)
			if real := filepath.Join(dir, "releases/1"); strings.Contains(file, "links-inside") {
				// Load says where the link leads; Compose leaves that to the host.
				if err := os.Remove(filepath.Join(dir, "current")); err != nil {
					t.Fatal(err)
				}
				if got := p.Compose.Services["web"].Volumes[0].Source; strings.Replace(got, Root, dir, 1) != real {
					t.Errorf("the bind is %s", got)
				}
				return
			}
			want, got := asTree(t, library(t, in, p.Bundle, dir), dir), asTree(t, p.Compose, Root)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the library's model (-) and ours (+):\n%s", diff)
			}
		})
	}
}

func TestWhatMeansNothingOnTheHostIsTakenOut(t *testing.T) {
	t.Parallel()
	src := pack(t, map[string]string{"compose.yaml": `
name: mine
x-top: 1
services:
  a:
    image: x
    x-a: {b: 1}
    develop: {watch: [{action: sync, path: /etc, target: /x}]}
    x-develop: {watch: [{action: sync, path: ../.., target: /x}]}
    attach: false
    healthcheck: {test: "true", x-b: 1}
    networks: {n: {x-c: 1}}
    volumes: [{type: volume, source: vv, target: /v, x-d: 1}]
networks: {n: {name: bridge, x-e: 1}}
volumes: {vv: {name: prod_db}}
`}, nil)
	p, err := Load(t.Context(), Input{Source: src})
	if err != nil {
		t.Fatal(err)
	}
	a := p.Compose.Services["a"]
	if a.Develop != nil || a.Attach != nil || a.EnvFiles != nil || p.Compose.Networks["n"].Name != "" || p.Compose.Volumes["vv"].Name != "" {
		t.Errorf("%+v", p.Compose)
	}
	extensionsLeft(t, "", reflect.ValueOf(p.Compose))
}

func extensionsLeft(t *testing.T, where string, v reflect.Value) {
	t.Helper()
	if v.Type() == reflect.TypeFor[types.Extensions]() && v.Len() > 0 {
		t.Errorf("%s has extensions", where)
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			extensionsLeft(t, where, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			extensionsLeft(t, where+"[]", v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if e := v.MapIndex(k); e.Kind() != reflect.Interface {
				extensionsLeft(t, where+"."+k.String(), e)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				extensionsLeft(t, where+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	default:
	}
}

func TestLoadRefusesWhatItIsNotGiven(t *testing.T) {
	t.Parallel()
	good := pack(t, map[string]string{"compose.yaml": "services: {a: {image: x}}"}, nil)
	for name, in := range map[string]Input{
		"no source":  {},
		"no file":    {Source: pack(t, map[string]string{"x": ""}, nil)},
		"publish":    {Source: good, Publish: "everywhere"},
		"empty":      {Source: pack(t, map[string]string{"compose.yaml": ""}, nil)},
		"no yaml":    {Source: pack(t, map[string]string{"compose.yaml": "a: [\n"}, nil)},
		"no mapping": {Source: pack(t, map[string]string{"compose.yaml": "- a\n"}, nil)},
		"null":       {Source: pack(t, map[string]string{"compose.yaml": "services:\n"}, nil)},
		"types": {Source: pack(t, map[string]string{"compose.yaml": "services: {a: {image: x, volumes: [{type: bind, source: [1], target: " +
			"2}]}}"}, nil)},
		"more types": {Source: pack(t, map[string]string{"compose.yaml": "include: 1\nservices: {a: {extends: [1]}}"}, nil)},
	} {
		p, err := Load(t.Context(), in)
		if p != nil || !extensions.IsKind(err, extensions.KindInvalid) || extensions.RemedyOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
