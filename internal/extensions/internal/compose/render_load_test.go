package compose

import (
	"context"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

// What Load passes, Render binds: paths of the bundle, of a file in a folder of
// it, and builds.
func TestALoadedStackIsRendered(t *testing.T) {
	t.Parallel()
	src := files{
		"deploy/compose.yaml": `
services:
  web:
    build: {context: ../app, args: {V: "${V}"}}
    volumes: ["..:/src", "../conf:/conf:ro"]
    env_file: [web.env]
    environment: [TOKEN, MODE]
    configs: [c]
    ports: ["127.0.0.1:8080:80"]
configs: {c: {file: ./c.conf}}
`,
		"deploy/web.env": "FROM_FILE=a$$b\n", "deploy/.env": "V=7\n", "deploy/c.conf": "c",
		"app/Dockerfile": "FROM scratch\n", "conf/x": "",
	}
	p, err := Load(context.Background(), Input{
		Source: src, Files: []string{"deploy/compose.yaml"}, Env: map[string]string{"MODE": "m"}, SecretNames: []string{"TOKEN"},
		Publish: PublishAsWritten,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := render(t, p, RenderOptions{Network: NetworkAllow, Mount: "/workspace", Env: map[string]string{"MODE": "m"},
		SecretNames: []string{"TOKEN"}})
	back := reload(t, r, types.Mapping{"SBX_SECRET_0": "s3cret"})
	web := back.Services["web"]
	if got, want := mountsOf(web), "/host/ws>/src /host/ws/conf>/conf:ro /host/ws/conf>/src/conf /host/ws/deploy>/src/deploy "+
		"/host/ws/deploy/c.conf>/src/deploy/c.conf"; got != want {
		t.Errorf("mounts %s\n  want %s", got, want)
	}
	if got, want := envText(web.Environment), "FROM_FILE=a$b MODE=m TOKEN=s3cret"; got != want {
		t.Errorf("environment %s, want %s", got, want)
	}
	if len(r.Builds) != 1 || r.Builds[0].Context != "app" || r.Builds[0].Dockerfile != "app/Dockerfile" || r.Builds[0].Args["V"] != "7" {
		t.Errorf("builds %+v", r.Builds)
	}
	if got := back.Configs["c"].File; got != "/host/ws/deploy/c.conf" {
		t.Errorf("config file %s", got)
	}
	if got := portsText(r.Services[0].Ports); got != "80/tcp@127.0.0.1:8080" || r.Services[0].WorkDir != "/src" {
		t.Errorf("ports %s, work dir %s", got, r.Services[0].WorkDir)
	}
}
