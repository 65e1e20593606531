package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// phases every side is timed in.
const (
	apply   = "apply"
	refresh = "refresh"
	destroy = "destroy"
)

// atOnce is how many operations Terraform runs side by side; the others get
// the same.
const atOnce = 10

// side is one way to run n copies of a stack. A phase's error counts as a
// failure and does not end the benchmark.
type side interface {
	name() string
	run(ctx context.Context, phase string, n int) error
	// clear removes whatever a failure left behind.
	clear()
}

// composeSide is plain Docker Compose: on the host itself, which is the
// floor, or from here over `docker -H ssh://`.
type composeSide struct {
	label string
	file  string
	env   []string
	run1  string // distinguishes the projects of one benchmark
	net   int    // second byte of its networks' addresses, 10.net.0.0/16
}

func (s *composeSide) name() string { return s.label }

func (s *composeSide) run(ctx context.Context, phase string, n int) error {
	args := map[string][]string{
		apply:   {"up", "-d", "--wait", "--quiet-pull"},
		refresh: {"ps", "-a", "--format", "json"},
		destroy: {"down", "-v", "-t", "0"},
	}[phase]
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = s.compose(ctx, i, args...)
		})
	}
	wg.Wait()
	return firstOf(errs)
}

func (s *composeSide) compose(ctx context.Context, i int, args ...string) error {
	full := append([]string{"compose", "-p", fmt.Sprintf("%s-%s-%d", s.run1, strings.ToLower(strings.ReplaceAll(s.label, " ", "")), i), "-f",
		s.file}, args...)
	// Of its own pools the engine has about thirty, and fifty stacks are compared.
	subnet := fmt.Sprintf("SUBNET=10.%d.%d.%d/28", s.net, i/16, i%16*16)
	return command(ctx, "", append(slices.Clone(s.env), subnet), "docker", full...)
}

func (s *composeSide) clear() { _ = s.run(context.Background(), destroy, 50) }

func firstOf(errs []error) error {
	failed, first := 0, error(nil)
	for _, err := range errs {
		if err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	if first != nil {
		return fmt.Errorf("%d of %d failed; the first: %w", failed, len(errs), first)
	}
	return nil
}

func command(ctx context.Context, dir string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(out.String())
		return fmt.Errorf("%s %s: %w: %s", name, args[0], err, text[max(0, len(text)-400):])
	}
	return nil
}

// sandboxerSide is Terraform with this provider.
type sandboxerSide struct {
	label string
	dir   string // the configuration
	env   []string
}

func (s *sandboxerSide) name() string { return s.label }

func (s *sandboxerSide) run(ctx context.Context, phase string, n int) error {
	count := fmt.Sprintf("-var=n=%d", n)
	args := map[string][]string{
		apply:   {"apply", "-auto-approve", "-no-color", "-input=false", count},
		refresh: {"plan", "-detailed-exitcode", "-no-color", "-input=false", count},
		destroy: {"destroy", "-auto-approve", "-no-color", "-input=false", count},
	}[phase]
	return command(ctx, s.dir, s.env, terraform(), args...)
}

func (s *sandboxerSide) clear() { _ = s.run(context.Background(), destroy, 0) }

func terraform() string {
	if p := os.Getenv("TF_ACC_TERRAFORM_PATH"); p != "" {
		return p
	}
	return "terraform"
}

// stack writes a Compose file of so many services that just run, and beside it
// the same with the subnet of its network, as those need it who bring their own.
func stack(b *testing.B, services int, image string) (file, withSubnet string) {
	b.Helper()
	var y strings.Builder
	y.WriteString("services:\n")
	for i := range services {
		fmt.Fprintf(&y, "  s%d:\n    image: %s\n    pull_policy: never\n    command: [sleep, \"86400\"]\n", i+1, image)
	}
	file = write(b, filepath.Join(b.TempDir(), "compose.yaml"), y.String())
	y.WriteString("networks:\n  default:\n    ipam:\n      config: [{subnet: \"${SUBNET}\"}]\n")
	return file, write(b, filepath.Join(b.TempDir(), "compose.yaml"), y.String())
}

func write(b *testing.B, path, text string) string {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// sshEnv lets docker's own ssh find the test host's key: its ssh(1) comes
// from PATH and gets a configuration of ours.
func sshEnv(b *testing.B, s *hosttest.Server, port int) []string {
	b.Helper()
	real, err := exec.LookPath("ssh")
	if err != nil {
		b.Skipf("no ssh client here: %v", err)
	}
	dir := b.TempDir()
	known := write(b, filepath.Join(dir, "known_hosts"), fmt.Sprintf("[127.0.0.1]:%d %s\n", port, s.HostKeyLine))
	config := write(b, filepath.Join(dir, "config"), fmt.Sprintf(
		"Host *\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n", s.KeyFile, known))
	wrapper := write(b, filepath.Join(dir, "bin", "ssh"), fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", real, config))
	if err := os.Chmod(wrapper, 0o700); err != nil {
		b.Fatal(err)
	}
	return []string{"PATH=" + filepath.Dir(wrapper) + ":" + os.Getenv("PATH"),
		fmt.Sprintf("DOCKER_HOST=ssh://%s@127.0.0.1:%d", s.User, port)}
}

// newSandboxerSide builds the provider once and writes a configuration of n
// sandboxes on the host.
func newSandboxerSide(b *testing.B, label string, s *hosttest.Server, port int, file string) *sandboxerSide {
	b.Helper()
	dir := b.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := command(b.Context(), "", []string{"CGO_ENABLED=0"}, "go", "build", "-o",
		filepath.Join(bin, "terraform-provider-sandboxer"), "github.com/sand-boxer/terraform-provider-sandboxer"); err != nil {
		b.Fatal(err)
	}
	rc := write(b, filepath.Join(dir, "terraformrc"),
		fmt.Sprintf("provider_installation {\n  dev_overrides { \"sand-boxer/sandboxer\" = %q }\n  direct {}\n}\n", bin))
	write(b, filepath.Join(dir, "catalog", "profiles", "profile.bench.yaml"), `id: profile.bench
version: "1.0.0"
extends: profile.base
extension: ext.compose-ssh
isolation: { level: container }
compose: { file: compose.yaml }
readiness: { settle: 0s } # the floor lets nothing settle
inputs: { repo: { type: string, required: true } }
`)
	write(b, filepath.Join(dir, "conf", "main.tf"), fmt.Sprintf(`
terraform {
  required_providers {
    sandboxer = { source = "sand-boxer/sandboxer" }
  }
}
provider "sandboxer" { catalog = [%q] }
variable "n" { type = number }
resource "sandboxer_host" "one" {
  name  = "bench"
  ssh = {
    address = "127.0.0.1"
    port    = %d
    user    = %q
    host_key = %q
    identity = { private_key_file = %q }
  }
}
resource "sandboxer_sandbox" "x" {
  count   = var.n
  name    = "bench-${count.index}"
  profile = "profile.bench"
  hosts   = [sandboxer_host.one.ref]
  inputs  = { repo = %q }
  ttl     = "1h"
}
`, filepath.Join(dir, "catalog"), port, s.User, s.HostKeyLine, s.KeyFile, filepath.Dir(file)))
	return &sandboxerSide{label: label, dir: filepath.Join(dir, "conf"), env: []string{
		"TF_CLI_CONFIG_FILE=" + rc, "SANDBOXER_STATE_DIR=" + filepath.Join(dir, "state"), "CHECKPOINT_DISABLE=1"}}
}

// timed runs one phase and tells how long it took.
func timed(ctx context.Context, s side, phase string, n int) (time.Duration, error) {
	start := time.Now()
	err := s.run(ctx, phase, n)
	return time.Since(start), err
}
