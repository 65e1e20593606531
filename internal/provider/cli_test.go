package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
)

// builtProvider is the folder of the binary under test, built once for all
// tests that drive Terraform as a user does.
var builtProvider = sync.OnceValues(func() (string, error) { return build("release") })

// armedProvider is the same program with one file more, which arms failpoints.
var armedProvider = sync.OnceValues(func() (string, error) {
	at, err := overlay("armed", map[string]string{"armed.go": "testdata/armed.go"})
	if err != nil {
		return "", err
	}
	return build("armed", "-overlay", at)
})

// overlay writes what go's -overlay takes: for files of the module, by their names in it, the files that it reads
// instead.
func overlay(name string, replace map[string]string) (string, error) {
	all := map[string]string{}
	for file, by := range replace {
		file, err1 := filepath.Abs(filepath.Join("../..", file))
		by, err2 := filepath.Abs(by)
		if err := errors.Join(err1, err2); err != nil {
			return "", err
		}
		all[file] = by
	}
	text, err1 := json.Marshal(map[string]map[string]string{"Replace": all})
	dir, err2 := buildDir()
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	at := filepath.Join(dir, name+".json")
	return at, os.WriteFile(at, text, 0o600)
}

func build(folder string, flags ...string) (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, folder)
	args := append([]string{"build", "-ldflags", "-s -w", "-o", filepath.Join(dir, providerName)}, flags...)
	if out, err := exec.Command("go", append(args, "../..")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return dir, nil
}

const providerName = "terraform-provider-sandboxer"

// buildDir is where the binaries are, until TestMain removes it.
var buildDir = sync.OnceValues(func() (string, error) {
	var err error
	builtDir, err = os.MkdirTemp("", "sbxbin")
	return builtDir, err
})

var builtDir string

// stopServers ends those that tests started.
var stopServers = func() error { return nil }

func TestMain(m *testing.M) {
	if err := quiet(); err != nil { // as the provider's own process is
		panic(err)
	}
	exttest.GuardMain(local.New(), "acme/web", "acme/api", engine.DefaultAccount)
	code := m.Run()
	if err := stopServers(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if builtDir != "" {
		if err := os.RemoveAll(builtDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// cli drives the real terraform in one folder with its own state.
type cli struct {
	t         testing.TB
	b         *bed
	dir       string
	terraform string
	env       []string
	// built is the folder of the provider that terraform starts, as a user's does, and that reads the environment. nil = the
	// commands use one of this process: to start one takes several times as long as all that they do.
	built func() (string, error)
}

func newCLI(t testing.TB, b *bed) *cli {
	t.Helper()
	terraform := requireTerraform(t)
	dir, err := os.MkdirTemp(b.root, "cwd")
	if err != nil {
		t.Fatal(err)
	}
	c := &cli{t: t, b: b, dir: dir, terraform: terraform}
	c.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+b.write("terraformrc", ""), "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_LOG=", "CI=",
		"TF_LOG_SDK=", "TF_LOG_PROVIDER_SANDBOXER=", failpointtest.Env+"=",
		plugin.EnvUnixSocketDir+"="+b.root) // a provider that is killed leaves its socket
	return c
}

// terraformRC has terraform run what was built.
func (b *bed) terraformRC(built func() (string, error)) string {
	b.t.Helper()
	bin, err := built()
	if err != nil {
		b.t.Fatal(err)
	}
	return b.write("terraformrc-"+filepath.Base(bin),
		fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"registry.terraform.io/sand-boxer/sandboxer\" = %q\n    "+
			"\"registry.opentofu.org/sand-boxer/sandboxer\" = %q\n  }\n}\n", bin, bin))
}

// killedAt is the environment in which the provider kills itself at a point.
func (c *cli) killedAt(point string) []string {
	c.t.Helper()
	return []string{"TF_CLI_CONFIG_FILE=" + c.b.terraformRC(armedProvider), failpointtest.Env + "=" + point + ":kill"}
}

// write replaces main.tf: the bed's provider block and body.
func (c *cli) write(body string) {
	c.t.Helper()
	text := "terraform {\n  required_providers {\n    sandboxer = { source = \"sand-boxer/sandboxer\" }\n  }\n}\n" + c.b.config(body)
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// command is one that starts a provider that was built.
func (c *cli) command(env []string, args ...string) *exec.Cmd {
	c.t.Helper()
	built := c.built
	if built == nil {
		built = builtProvider
	}
	return c.prepared(append([]string{"TF_CLI_CONFIG_FILE=" + c.b.terraformRC(built)}, env...), args...)
}

func (c *cli) prepared(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(c.terraform, args...)
	cmd.Dir = c.dir
	cmd.Env = append(append([]string{}, c.env...), env...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// try runs terraform and returns everything it printed with its exit code.
func (c *cli) try(env []string, args ...string) (string, int) {
	c.t.Helper()
	var out bytes.Buffer
	cmd := c.prepared(env, args...)
	if c.built != nil || env != nil {
		cmd = c.command(env, args...)
	} else {
		defer c.attach(cmd)()
	}
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("terraform %v: %v", args, err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

func (c *cli) must(args ...string) string {
	c.t.Helper()
	out, code := c.try(nil, args...)
	if code != 0 {
		c.t.Fatalf("terraform %v: exit %d\n%s", args, code, out)
	}
	return out
}

func (c *cli) apply(args ...string) string {
	c.t.Helper()
	return c.must(append([]string{"apply", "-auto-approve", "-no-color", "-input=false"}, args...)...)
}

func (c *cli) destroy(args ...string) string {
	c.t.Helper()
	return c.must(append([]string{"destroy", "-auto-approve", "-no-color", "-input=false"}, args...)...)
}

// planIsEmpty fails unless there is nothing to do.
func (c *cli) planIsEmpty(args ...string) {
	c.t.Helper()
	out, code := c.try(nil, append([]string{"plan", "-detailed-exitcode", "-no-color", "-input=false"}, args...)...)
	if code != 0 {
		c.t.Fatalf("the plan is not empty (exit %d):\n%s", code, out)
	}
}

// stateOf reads one attribute of a resource from the state file.
func (c *cli) stateOf(address, attribute string) any {
	c.t.Helper()
	var file struct {
		Resources []struct {
			Type, Name string
			Instances  []struct {
				IndexKey   json.RawMessage `json:"index_key"`
				Attributes map[string]any
			}
		}
	}
	raw, err := os.ReadFile(filepath.Join(c.dir, "terraform.tfstate"))
	if err == nil {
		err = json.Unmarshal(raw, &file)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range file.Resources {
		for _, i := range r.Instances {
			at := r.Type + "." + r.Name
			if i.IndexKey != nil {
				at += "[" + string(i.IndexKey) + "]"
			}
			if at == address {
				return i.Attributes[attribute]
			}
		}
	}
	return nil
}
