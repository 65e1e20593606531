package compose

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func itoa(n int) string { return strconv.Itoa(n) }

// mountsOf spells out what a service mounts, in the order of the model.
func mountsOf(s types.ServiceConfig) string {
	var out []string
	for _, m := range s.Volumes {
		text := m.Source + ">" + m.Target
		if m.ReadOnly {
			text += ":ro"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestMounts(t *testing.T) {
	t.Parallel()
	src := files{"src/main.go": "x", "data/": "", "link": "->data", "conf": "c"}
	for what, c := range map[string]struct {
		volumes string
		o       RenderOptions
		want    string
		workDir string
		mkdir   string
	}{
		"added":            {"", RenderOptions{Mount: "/workspace"}, "/host/ws>/workspace", "/workspace", ""},
		"added read-only":  {"", RenderOptions{Mount: "/workspace", ReadOnly: true}, "/host/ws>/workspace:ro", "/workspace", ""},
		"none":             {"", RenderOptions{}, "", "", ""},
		"there already":    {`".:/app"`, RenderOptions{Mount: "/workspace"}, "/host/ws>/app", "/app", ""},
		"there, read-only": {`".:/app", "./data:/data"`, RenderOptions{ReadOnly: true}, "/host/ws>/app:ro /host/ws/data>/data:ro", "/app", ""},
		"place taken":      {`"./src:/workspace"`, RenderOptions{Mount: "/workspace"}, "/host/ws/src>/workspace", "", ""},
		"bundled": {`".:/app"`, RenderOptions{Mount: "/workspace", Bundled: true, ReadOnly: true},
			"/host/bundle>/app /host/ws>/workspace:ro", "/workspace", ""},
		"missing":        {`"./new/x:/x"`, RenderOptions{}, "/host/ws/new/x>/x", "", "new/x"},
		"through a link": {`"./link:/x"`, RenderOptions{}, "/host/ws/data>/x", "", ""},
		"of the host":    {`"/srv/share:/x:ro"`, RenderOptions{}, "/srv/share>/x:ro", "", ""},
		"pinned": {`".:/app", "./src/main.go:/m"`, RenderOptions{},
			"/host/ws>/app /host/ws/src/main.go>/m /host/ws/src>/app/src /host/ws/src/main.go>/app/src/main.go", "/app", ""},
		"hidden": {`".:/app", "/app/src", "./src/main.go:/m"`, RenderOptions{}, "/host/ws>/app >/app/src /host/ws/src/main.go>/m",
			"/app", ""},
		"not writable": {`".:/app:ro", "./data:/data"`, RenderOptions{}, "/host/ws>/app:ro /host/ws/data>/data", "/app", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := parse(t, `services: {a: {image: i, volumes: [`+c.volumes+`]}}`, src)
			r := render(t, p, c.o)
			if got := mountsOf(reload(t, r, nil).Services["a"]); got != c.want {
				t.Errorf("mounts %s\n  want %s", got, c.want)
			}
			if r.Services[0].WorkDir != c.workDir || strings.Join(r.Mkdir, " ") != c.mkdir {
				t.Errorf("work dir %q, folders to make %q", r.Services[0].WorkDir, r.Mkdir)
			}
		})
	}
}

// The names that lead to what one service binds are pinned in every other
// service that could replace them.
func TestPinsReachEveryServiceThatCouldReplace(t *testing.T) {
	t.Parallel()
	const text = `
services:
  a: {image: i, volumes: ["./app:/code"]}
  b: {image: i, volumes: ["./app/db/init:/init:ro", "./other:/o"]}
  c: {image: i, configs: [c]}
configs: {c: {file: ./app/etc/c.conf}}
`
	src := files{"app/db/init/x": "", "app/etc/c.conf": "", "other/x": ""}
	back := reload(t, render(t, parse(t, text, src), RenderOptions{}), nil)
	want := "/host/ws/app>/code /host/ws/app/db>/code/db /host/ws/app/db/init>/code/db/init /host/ws/app/etc>/code/etc " +
		"/host/ws/app/etc/c.conf>/code/etc/c.conf"
	if got := mountsOf(back.Services["a"]); got != want {
		t.Errorf("mounts %s\n  want %s", got, want)
	}
	if got := mountsOf(back.Services["b"]); strings.Contains(got, "/o/") {
		t.Errorf("pinned where nothing is bound: %s", got)
	}
	if got := back.Configs["c"].File; got != "/host/ws/app/etc/c.conf" {
		t.Errorf("config file %s", got)
	}
}

func TestBindsThatLeaveAreRefused(t *testing.T) {
	t.Parallel()
	src := files{"out": "->/etc", "up": "->../..", "dangling": "->nowhere", "d/": ""}
	for _, source := range []string{"./out", "./out/shadow", "./up", "./dangling", "./dangling/x"} {
		p := parse(t, `services: {a: {image: i, volumes: ["`+source+`:/x"]}}`, src)
		if err := refuse(t, p, RenderOptions{}, extensions.KindInvalid); err.Remedy == "" {
			t.Errorf("%s: no remedy in %v", source, err)
		}
	}
}

func TestEnvironmentReachesWhomItShould(t *testing.T) {
	t.Parallel()
	const text = `
services:
  a: {image: i, environment: {KEY: own, MODE: }}
  b: {image: i, environment: [TOKEN, HOME, MODE], post_start: [{command: [x], environment: [TOKEN, HOME]}]}
  c: {image: i}
`
	o := RenderOptions{Service: "a", Env: map[string]string{"MODE": "m", "KEY": "spec"}, SecretNames: []string{"TOKEN", "TOKEN"},
		ProxyEnv: map[string]string{"HTTP_PROXY": "p", "KEY": "no"}}
	r := render(t, parse(t, text, nil), o)
	back := reload(t, r, types.Mapping{"SBX_SECRET_0": "s3cret", "HOME": "leaked"})
	for name, want := range map[string]string{"a": "HTTP_PROXY=p KEY=spec MODE=m TOKEN=s3cret", "b": "HTTP_PROXY=p KEY=no MODE=m TOKEN=s3cret",
		"c": "HTTP_PROXY=p KEY=no"} {
		if got := envText(back.Services[name].Environment); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := envText(back.Services["b"].PostStart[0].Environment); got != "TOKEN=s3cret" {
		t.Errorf("hook: %s", got)
	}
	if len(r.SecretVars) != 1 || r.SecretVars["SBX_SECRET_0"] != "TOKEN" {
		t.Errorf("secrets: %v", r.SecretVars)
	}
	o.Service = ""
	back = reload(t, render(t, parse(t, text, nil), o), types.Mapping{"SBX_SECRET_0": "s"})
	if got := envText(back.Services["c"].Environment); got != "HTTP_PROXY=p KEY=spec MODE=m TOKEN=s" {
		t.Errorf("without a default service c has %s", got)
	}
}

func envText(m types.MappingWithEquals) string {
	var out []string
	for k, v := range m {
		if v == nil {
			out = append(out, k)
		} else {
			out = append(out, k+"="+*v)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestHintsForReadiness(t *testing.T) {
	t.Parallel()
	const text = `
services:
  a: {image: i, depends_on: {once: {condition: service_completed_successfully}, db: {condition: service_healthy}}}
  once: {image: i, ports: ["80"]}
  db: {image: i}
  hc: {image: i, healthcheck: {test: ["CMD", "x"]}, scale: 3}
  off: {image: i, healthcheck: {disable: true}}
  none: {image: i, healthcheck: {test: ["NONE"]}}
  again: {image: i, restart: always}
  maybe: {image: i, restart: on-failure}
`
	got := map[string]string{}
	for _, s := range render(t, parse(t, text, nil), RenderOptions{Service: "a"}).Services {
		text := itoa(s.Scale)
		for word, set := range map[string]bool{" once": s.OneShot, " long": s.LongRunning} {
			if set {
				text += word
			}
		}
		if s.Health {
			text += " health"
		}
		got[s.Name] = text
	}
	for name, want := range map[string]string{
		"a": "1 long", "once": "1 once", "db": "1 long", "hc": "3 long health", "off": "1", "none": "1", "again": "1 long", "maybe": "1",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}
