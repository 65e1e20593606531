package compose

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const testID = extensions.ID("sbx-abcdefghijklmnopqrst")

// testRoot is where the tests' loader sees the source.
const testRoot = "/bundle"

// files is a source made of names and contents; a name that ends in "/" is a
// folder, a content that starts with "->" a symbolic link.
type files map[string]string

func (f files) Open(context.Context) (io.ReadCloser, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range sortedKeys(f) {
		h := &tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(f[name]))}
		data := f[name]
		switch {
		case name[len(name)-1] == '/':
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		case len(data) > 2 && data[:2] == "->":
			h.Typeflag, h.Linkname, h.Size, data = tar.TypeSymlink, data[2:], 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, data); err != nil {
			return nil, err
		}
	}
	return io.NopCloser(&b), w.Close()
}

func (files) Digest() string { return "" }
func (files) Size() int64    { return 0 }
func (files) Origin() string { return "test" }

// parse loads a stack as compose-go has it, without the policy: rendering is
// tried on what a grant may let through as well.
func parse(t testing.TB, text string, src files) *Project {
	t.Helper()
	p, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: testRoot, ConfigFiles: []types.ConfigFile{{Filename: testRoot + "/compose.yaml", Content: []byte(text)}},
		Environment: types.Mapping{},
	}, func(o *loader.Options) {
		o.SetProjectName("stack", true)
		o.SkipResolveEnvironment = true
	})
	if err != nil {
		t.Fatalf("the stack cannot be loaded: %v", err)
	}
	out := &Project{Compose: p, Root: testRoot}
	if src != nil {
		if out.Bundle, err = ReadBundle(context.Background(), src); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// reload reads a rendered model as Compose on a host does, with the script's
// environment.
func reload(t testing.TB, r Rendered, env types.Mapping) *types.Project {
	t.Helper()
	p, err := reloaded(r, env)
	if err != nil {
		t.Fatalf("the rendered model cannot be loaded: %v\n%s", err, r.Model)
	}
	return p
}

func reloaded(r Rendered, env types.Mapping) (*types.Project, error) {
	all := types.Mapping{VarWorkspace: "/host/ws", VarBundle: "/host/bundle"}
	for i := range r.Networks {
		all[netVar(i)] = "10.0." + string(rune('0'+i)) + ".0/28"
	}
	for k, v := range env {
		all[k] = v
	}
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: "/host", ConfigFiles: []types.ConfigFile{{Filename: "/host/model.json", Content: r.Model}}, Environment: all,
	}, func(o *loader.Options) { o.SetProjectName(string(testID), true) })
}

func render(t testing.TB, p *Project, o RenderOptions) Rendered {
	t.Helper()
	r, err := p.Render(withDefaults(o))
	if err != nil {
		t.Fatalf("render: %v", err)
	}
	return r
}

func withDefaults(o RenderOptions) RenderOptions {
	o.ID = testID
	if o.Network == "" {
		o.Network = NetworkDeny
	}
	if o.Labels == nil {
		o.Labels = map[string]string{extensions.LabelID: string(testID), extensions.LabelAccount: "acme/$web"}
	}
	return o
}

// refuse renders and wants an error of the kind.
func refuse(t testing.TB, p *Project, o RenderOptions, kind extensions.Kind) *extensions.Error {
	t.Helper()
	_, err := p.Render(withDefaults(o))
	var e *extensions.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("render: %v, want %s", err, kind)
	}
	return e
}

const shop = `
services:
  web:
    build: {context: ./web, args: {V: "1"}}
    container_name: my-web
    ports: ["8080:80", "9000:9000/udp"]
    restart: always
    environment: [TOKEN, "PRICE=5$$", UNSET]
    volumes: [".:/app", "./conf/nginx.conf:/etc/nginx.conf:ro", "cache:/cache", "./new/data:/data"]
    depends_on: {db: {condition: service_healthy}, migrate: {condition: service_completed_successfully}}
    networks: [front, back]
    user: "1000"
  db:
    image: postgres:16
    environment: {POSTGRES_PASSWORD: }
    healthcheck: {test: ["CMD-SHELL", "pg_isready -U $$USER"]}
    expose: ["5432"]
    volumes: ["data:/var/lib/postgresql", "./conf/init:/init:ro"]
    networks: [back]
    deploy: {resources: {limits: {memory: 256M}}}
  migrate:
    image: tool:1
    command: ["sh", "-c", "echo $$HOME"]
    configs: [{source: settings, target: /settings}]
    secrets: [tok]
    networks: [back]
networks:
  front: {name: shared-front}
  back: {}
  unused: {}
volumes:
  data: {name: my-data}
  cache: {}
  other: {}
configs:
  settings: {content: "a=$$b"}
secrets:
  tok: {environment: TOKEN}
`

var shopFiles = files{
	"compose.yaml": shop, "conf/nginx.conf": "x", "conf/init/1.sql": "select 1", "web/Dockerfile": "FROM scratch\n", "web/a": "1",
}

func shopOptions() RenderOptions {
	memory, cpu, pids := int64(1024), extensions.Milli(3000), int64(300)
	return RenderOptions{
		Service: "web", Mount: "/workspace", Env: map[string]string{"MODE": "a$b", "POSTGRES_PASSWORD": "pw"},
		SecretNames: []string{"TOKEN", "KEY"}, Resources: extensions.Resources{MemoryMB: &memory, CPU: &cpu, Pids: &pids},
	}
}

func TestRenderGolden(t *testing.T) {
	t.Parallel()
	deny, allow, guarded, readonly := shopOptions(), shopOptions(), shopOptions(), shopOptions()
	allow.Network = NetworkAllow
	guarded.Network, guarded.Bridges, guarded.Egress, guarded.Bundled = NetworkGuarded, []string{"sbxaaaa0", "sbxaaaa1"}, true, true
	readonly.ReadOnly, readonly.Service = true, ""
	for name, o := range map[string]RenderOptions{"deny": deny, "allow": allow, "guarded": guarded, "readonly": readonly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, render(t, parse(t, shop, shopFiles), o))
		})
	}
}

func TestRenderIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	first := render(t, parse(t, shop, shopFiles), shopOptions())
	for range 20 {
		again := render(t, parse(t, shop, shopFiles), shopOptions())
		if !bytes.Equal(first.Model, again.Model) || string(asJSON(t, first)) != string(asJSON(t, again)) {
			t.Fatal("two renderings of one stack differ")
		}
	}
}

func golden(t *testing.T, name string, r Rendered) {
	t.Helper()
	model := r.Model
	r.Model, r.Project = nil, nil
	got := append(append([]byte{}, model...), asJSON(t, r)...)
	file := filepath.Join("testdata", "render", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("%s:%d differs (go test -update rewrites it)\ngot  %s\nwant %s", file, i+1, a[i], b[i])
			}
		}
		t.Fatalf("%s has %d lines, want %d", file, len(a), len(b))
	}
	reload(t, Rendered{Model: model, Networks: r.Networks}, types.Mapping{"SBX_SECRET_0": "k", "SBX_SECRET_1": "t"})
}

func asJSON(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

func netVar(i int) string { return VarNet + string(rune('0'+i)) }
