package compose

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// leaks loads a stack and looks for the canary in all that comes of it.
func leaks(t *testing.T, in Input, canary string) {
	t.Helper()
	p, err := Load(t.Context(), in)
	if err != nil {
		if strings.Contains(err.Error(), canary) {
			t.Errorf("the refusal has the canary: %v", err)
		}
		return
	}
	data, jerr := json.Marshal(p.Compose)
	if jerr != nil {
		t.Fatal(jerr)
	}
	secrets, _ := p.Compose.MarshalYAML()
	if strings.Contains(string(data)+string(secrets), canary) {
		t.Errorf("the model has the canary: %s", data)
	}
	for _, s := range p.Compose.Secrets {
		if strings.Contains(s.Content, canary) {
			t.Error("a secret has the canary")
		}
	}
}

// Every key that names a path, with every way out of the bundle, while the file
// it leads to exists, is well formed for that key, and holds a canary.
func TestNothingOutsideTheBundleIsRead(t *testing.T) {
	const canary = "c4n4ry-f1l3"
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	outside := map[string]string{
		"stack.yaml": "services: {base: {image: " + canary + "}}\n",
		"vars.env":   "A=" + canary + "\n",
		".env":       "A=" + canary + "\n",
		"Dockerfile": "FROM " + canary + "\n",
		"plain":      canary,
	}
	for name, data := range outside {
		for _, at := range []string{dir, filepath.Join(dir, "sub")} {
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(at, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	up := strings.Repeat("../", 12) + strings.TrimPrefix(dir, "/")
	ways := func(name string) []string {
		return []string{dir + "/" + name, up + "/" + name, "./x/" + "../" + up + "/" + name, "~/" + name, "link/" + name, "file://" + dir + "/" +
			name, "$DIR/" + name, name}
	}
	stacks := map[string]struct{ target, text string }{
		"include":           {"stack.yaml", "include: ['%']\nservices: {a: {image: x}}"},
		"include list":      {"stack.yaml", "include: [{path: [in.yaml, '%']}]\nservices: {a: {image: x}}"},
		"include directory": {"", "include: [{path: in.yaml, project_directory: '%'}]\nservices: {a: {image: x, command: '${A-}'}}"},
		"include env":       {"vars.env", "include: [{path: in.yaml, env_file: '%'}]\nservices: {a: {image: x}}"},
		"nested include":    {"vars.env", "include: [sub/inc.yaml]\nservices: {a: {image: x, labels: {p: '%'}}}"},
		"extends":           {"stack.yaml", "services: {a: {extends: {file: '%', service: base}}}"},
		"extends by merge":  {"stack.yaml", "x-e: &e {extends: {file: '%', service: base}}\nservices: {a: {<<: *e}}"},
		"env_file":          {"vars.env", "services: {a: {image: x, env_file: '%'}}"},
		"env_file list":     {"vars.env", "services: {a: {image: x, env_file: [{path: '%', required: false}]}}"},
		"env_file raw":      {"vars.env", "services: {a: {image: x, env_file: [{path: '%', format: raw}]}}"},
		"label_file":        {"vars.env", "services: {a: {image: x, label_file: ['%']}}"},
		"config":            {"plain", "services: {a: {image: x}}\nconfigs: {c: {file: '%'}}"},
		"secret":            {"plain", "services: {a: {image: x}}\nsecrets: {c: {file: '%'}}"},
		"build":             {"", "services: {a: {build: '%'}}"},
		"dockerfile":        {"Dockerfile", "services: {a: {build: {context: ., dockerfile: '%'}}}"},
		"contexts":          {"", "services: {a: {build: {context: ., additional_contexts: {c: '%'}}}}"},
		"bind":              {"plain", "services: {a: {image: x, volumes: [{type: bind, source: '%', target: /x}]}}"},
		"bind short":        {"plain", "services: {a: {image: x, volumes: ['%:/x']}}"},
		"seccomp":           {"plain", "services: {a: {image: x, security_opt: ['seccomp:%']}}"},
		"credential":        {"plain", "services: {a: {image: x, credential_spec: {file: '%'}}}"},
		"device": {"plain", "services: {a: {image: x, volumes: [v:/v]}}\nvolumes: {v: {driver_opts: {type: none, o: bind, device: " +
			"'%'}}}"},
		"watch":     {"plain", "services: {a: {image: x, develop: {watch: [{action: rebuild, path: '%'}]}}}"},
		"build ssh": {"plain", "services: {a: {build: {context: ., ssh: ['k=%']}}}"},
	}
	for name, s := range stacks {
		for _, way := range ways(s.target) {
			src := pack(t, map[string]string{
				"compose.yaml": strings.ReplaceAll(s.text, "%", way), "in.yaml": "services: {i: {image: i, environment: [A]}}\n",
				"sub/inc.yaml": "include: [{path: in.yaml, env_file: vars.env}]\n", "sub/in.yaml": "services: {i: {image: i, environment: [A]}}\n",
			}, map[string]string{"link": dir})
			leaks(t, Input{Source: src, Env: map[string]string{"DIR": dir}, Allow: []string{"interpolate-environment:A"}}, canary)
		}
		control(t, name, strings.ReplaceAll(s.text, "%", dir+"/"+s.target), canary)
	}
	src := pack(t, map[string]string{"compose.yaml": "services: {a: {image: 'x${A-}', environment: [A]}}\n"},
		map[string]string{"l.yaml": dir + "/stack.yaml", ".env": dir + "/.env"})
	for _, way := range append(ways("stack.yaml"), "l.yaml", "compose.yaml") {
		leaks(t, Input{Source: src, Files: []string{way}}, canary)
		leaks(t, Input{Source: src, Files: []string{"compose.yaml", way}}, canary)
	}
	for _, way := range append(ways("vars.env"), ".env") {
		leaks(t, Input{Source: src, Files: []string{"compose.yaml"}, EnvFiles: []string{way}}, canary)
	}
}

// control shows that the canaries can be found: the library, left to itself,
// reads them.
func control(t *testing.T, name, text, canary string) {
	t.Helper()
	details := types.ConfigDetails{WorkingDir: t.TempDir(), ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
		Environment: types.Mapping{}}
	p, err := loader.LoadWithContext(t.Context(), details, func(o *loader.Options) { o.SetProjectName("x", true) })
	reads := map[string]bool{"include": true, "extends": true, "extends by merge": true, "env_file": true, "env_file list": true,
		"label_file": true}
	if !reads[name] {
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if data, _ := json.Marshal(p); !strings.Contains(string(data), canary) {
		t.Errorf("%s: the canary of this case is never read: %s", name, data)
	}
}

func TestTheEnvironmentOfTheProcessIsNeverRead(t *testing.T) {
	const canary = "c4n4ry-env"
	// Names the library or Compose would look at, and some of one's own.
	names := []string{"A", "HOME", "PWD", "USER", "PATH", "COMPOSE_FILE", "COMPOSE_PROFILES", "COMPOSE_PROJECT_NAME", "COMPOSE_ENV_FILES",
		"COMPOSE_DISABLE_ENV_FILE", "COMPOSE_PATH_SEPARATOR", "COMPOSE_REMOVE_ORPHANS", "DOCKER_HOST", "DOCKER_CONTEXT",
		"DOCKER_DEFAULT_PLATFORM"}
	for _, n := range names {
		t.Setenv(n, canary)
	}
	for _, n := range names {
		for _, text := range []string{
			"services: {a: {image: x, command: '$" + n + "'}}", "services: {a: {image: x, command: '${" + n + "-d}'}}",
			"services: {a: {image: x, command: '${" + n + ":+set}${" + n + "-}'}}", "services: {a: {image: x, environment: [" + n + "]}}",
			"services: {a: {image: x, environment: {" + n + ": }}}", "services: {a: {build: {context: ., args: [" + n + "]}}}",
			"services: {a: {image: x}}\nsecrets: {s: {environment: " + n + "}}", "services: {a: {image: x}}\nconfigs: {s: {environment: " + n + "}}",
			"services: {a: {image: x, env_file: e.env}}", "services: {a: {image: x, label_file: e.env}}",
			"services: {a: {image: x, volumes: ['~/x:/x']}}",
			"name: '${" + n + "-n}'\nservices: {a: {image: '${" + n + "-x}'}}",
		} {
			src := pack(t, map[string]string{"compose.yaml": text, "Dockerfile": "FROM x\n", "e.env": n + "\nX=${" + n + "-}\n"}, nil)
			leaks(t, Input{Source: src}, canary)
			leaks(t, Input{Source: src, Allow: []string{"interpolate-environment:" + n}}, canary)
			leaks(t, Input{Source: src, SecretNames: []string{n}}, canary)
		}
	}
}
