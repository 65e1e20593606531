//go:build linux

package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

const testMax = 40

func TestConformance(t *testing.T) {
	t.Parallel()
	excuses := map[string]string{
		"entrypoint/runs-the-image":            "a sandbox on this machine has no image; that is refused",
		"list/has-every-page":                  "a folder has no pages",
		"list/a-broken-one-is-an-error":        "a folder has no pages",
		"errors/unauthorized":                  "this extension takes no credentials",
		"errors/each-alternative-opens":        "this extension takes no credentials",
		"errors/throttled-is-told-not-retried": "nobody limits the rate of calls to this machine",
		"errors/poll-tells-a-faltering-answer": "no gateway is between this backend and the sandbox's init",
		"core/provision-lost-answer-keeps-handle": "between this backend and the kernel no answer can be lost; a killed process is tested at " +
			"every step",
	}
	if testLauncher() == launcherBubblewrap {
		excuses["inside/workspace-read-only"] = "bubblewrap cannot make a workspace read-only; it is refused, which is tested"
	}
	exttest.Run(t, exttest.Harness{
		New: func(testing.TB) extensions.Extension { return New() },
		Config: func(t testing.TB) extensions.Config {
			state := t.TempDir()
			exttest.Guard(t, state)
			return extensions.Config{Binding: "ext.local", Account: "acme/web", StateDir: state,
				Values: map[string]any{"max_sandboxes": testMax, "launcher": testLauncher()}}
		},
		User: "sandbox",
		Unreachable: func(t testing.TB, cfg extensions.Config) {
			root := filepath.Join(cfg.StateDir, "local")
			must(t, os.MkdirAll(root, 0o700))
			must(t, os.Rename(root, root+".away"))
			must(t, os.WriteFile(root, nil, 0o600))
			t.Cleanup(func() {
				must(t, os.Remove(root))
				must(t, os.Rename(root+".away", root))
			})
		},
		Exhaust: fillPlace,
		NotHere: func(_ testing.TB, _ extensions.Config, spec extensions.Spec) extensions.Spec {
			spec.Resources.GPU = &extensions.GPU{Count: 1}
			return spec
		},
		CutExec: cutExec,
		Vanish: func(t testing.TB, cfg extensions.Config, h extensions.Handle) {
			bx := settings{root: filepath.Join(cfg.StateDir, "local")}.box(h.ID)
			rec, err := bx.read()
			must(t, err)
			must(t, rec.Init.kill(context.Background()))
			must(t, removeCgroups(rec.Cgroups))
			must(t, os.RemoveAll(bx.dir))
		},
		Relabel: func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID) {
			editJSON(t, filepath.Join(cfg.StateDir, "local", string(h.ID), recordName), "id", string(id))
		},
		RelabelSnapshot: func(t testing.TB, cfg extensions.Config, h extensions.SnapshotHandle, id string) {
			editJSON(t, filepath.Join(cfg.StateDir, "local", snapshotsName, h.ID, recordName), "id", id)
		},
		Listen: func(t testing.TB, _ extensions.Config) []exttest.Listener {
			bash, err := exec.LookPath("bash")
			must(t, err)
			out := func(protocol string) func(address, port, word string) []string {
				return func(address, port, word string) []string {
					return []string{bash, "-c", fmt.Sprintf("printf %%s %s >/dev/%s/%s/%s", word, protocol, address, port)}
				}
			}
			return []exttest.Listener{exttest.ListenOn(t, "127.0.0.1",
				map[string]func(address, port, word string) []string{"tcp": out("tcp"), "udp": out("udp")})}
		},
		Residue: residue,
		Outside: outside,
		Log: func(t testing.TB, b extensions.Backend, h extensions.Handle, line string) {
			_, err := b.(extensions.Execer).Exec(t.Context(), h,
				extensions.ExecRequest{Command: []string{"sh", "-c", `(sleep 0.5; printf '%s\n' "$1") &`, "sh", line}})
			must(t, err)
			time.Sleep(time.Second)
		},
		Starts: func(_ testing.TB, cfg extensions.Config) int {
			started.Lock()
			defer started.Unlock()
			return started.at[filepath.Join(cfg.StateDir, "local")]
		},
		Excuse: excuses,
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fillPlace records as many sandboxes of somebody else as may live here; this
// very process stands in for their inits.
func fillPlace(t testing.TB, cfg extensions.Config) {
	s := settings{root: filepath.Join(cfg.StateDir, "local")}
	self, err := identify(os.Getpid())
	must(t, err)
	for range testMax {
		id, err := extensions.NewID(nil)
		must(t, err)
		bx := s.box(id)
		must(t, os.MkdirAll(bx.dir, 0o700))
		must(t, bx.write(record{Account: "somebody/else", State: stateReady, Init: self, Deadline: time.Now().Add(time.Hour)}))
	}
}

func editJSON(t testing.TB, path, key, value string) {
	raw, err := os.ReadFile(path)
	must(t, err)
	var m map[string]any
	must(t, json.Unmarshal(raw, &m))
	m[key] = value
	raw, err = json.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(path, raw, 0o600))
}

// initsOf lists the inits that hold a file below root open, as far as this
// user may look, by their argument lists.
func initsOf(root string) []string {
	var found []string
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range pids {
		line, _ := os.ReadFile(p + "/cmdline")
		if !strings.HasPrefix(string(line), stage.Name) && !strings.HasPrefix(string(line), "bwrap") {
			continue
		}
		fds, _ := filepath.Glob(p + "/fd/*")
		for _, fd := range fds {
			if to, _ := os.Readlink(fd); strings.HasPrefix(to, root+"/") {
				found = append(found, p+" "+strings.ReplaceAll(string(line), "\x00", " "))
				break
			}
		}
	}
	return found
}

func residue(t testing.TB, cfg extensions.Config) []string {
	var list []string
	root := filepath.Join(cfg.StateDir, "local")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != root {
			list = append(list, path)
		}
		return nil
	})
	list = append(list, initsOf(root)...)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, root) || strings.Contains(line, "/workspace ") {
			list = append(list, line)
		}
	}
	slices.Sort(list)
	return list
}

func outside(t testing.TB, cfg extensions.Config) []string {
	var list []string
	_ = filepath.WalkDir(cfg.StateDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, _ := os.ReadFile(path)
			list = append(list, string(b))
		}
		return nil
	})
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range lines {
		b, _ := os.ReadFile(p)
		list = append(list, string(b))
	}
	for _, p := range initsOf(filepath.Join(cfg.StateDir, "local")) {
		proc, _, _ := strings.Cut(p, " ")
		b, _ := os.ReadFile(proc + "/environ")
		if len(b) > 0 {
			list = append(list, fmt.Sprintf("environment of %s: %s", p, b))
		}
	}
	return list
}
