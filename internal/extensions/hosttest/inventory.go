package hosttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
)

// Inventory is what a machine holds, by kind, one line per thing.
type Inventory map[string][]string

// Snapshot takes the inventory of this machine: Docker's containers, networks, volumes and images if a daemon
// answers, firewall rules, and processes related to sandboxes. If tests of other packages run at the same
// time, within limits it to lines that contain one of the given texts: ids, an account, the image's name,
// Server.HomeDir.
func Snapshot(t testing.TB, within ...string) Inventory {
	t.Helper()
	inv := Inventory{}
	if daemon() == nil {
		must(t, inv.addDocker(t.Context()))
	}
	inv["firewall rule"] = firewall(t)
	inv["process"] = sandboxProcesses(within)
	for kind, lines := range inv {
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return strings.TrimSpace(line) == "" || kind != "process" && !containsAny(line, within)
		})
		slices.Sort(lines)
		inv[kind] = lines
	}
	return inv
}

// endpoint is where Docker's command line finds its daemon.
var endpoint = sync.OnceValues(func() (string, error) { return docker("context", "inspect", "--format", "{{.Endpoints.docker.Host}}") })

// addDocker asks the daemon itself: tests ask it so often that starting the command line would take longer than they do.
func (i Inventory) addDocker(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	at, err := endpoint()
	if err != nil {
		return err
	}
	c, err := client.New(client.WithHost(at))
	if err != nil {
		return err
	}
	containers, err1 := c.ContainerList(ctx, client.ContainerListOptions{All: true})
	networks, err2 := c.NetworkList(ctx, client.NetworkListOptions{})
	volumes, err3 := c.VolumeList(ctx, client.VolumeListOptions{})
	images, err4 := c.ImageList(ctx, client.ImageListOptions{All: true})
	if err := errors.Join(err1, err2, err3, err4, c.Close()); err != nil {
		return err
	}
	for _, o := range containers.Items {
		i.add("container", o.ID, o.Names, o.Image, o.Labels)
	}
	for _, o := range networks.Items {
		i.add("network", o.ID, o.Name, o.Labels)
	}
	for _, o := range volumes.Items {
		i.add("volume", o.Name, o.Labels)
	}
	for _, o := range images.Items {
		i.add("image", o.ID, o.RepoTags)
	}
	return nil
}

func (i Inventory) add(kind string, what ...any) {
	i[kind] = append(i[kind], strings.TrimSpace(fmt.Sprintln(what...)))
}

// Diff lists what only later has ("+ kind: line") and what only i has ("- kind: line"); "" means no change.
func (i Inventory) Diff(later Inventory) string {
	kinds := slices.Collect(maps.Keys(i))
	for k := range later {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	slices.Sort(kinds)
	var b strings.Builder
	for _, kind := range kinds {
		for _, line := range without(later[kind], i[kind]) {
			b.WriteString("+ " + kind + ": " + line + "\n")
		}
		for _, line := range without(i[kind], later[kind]) {
			b.WriteString("- " + kind + ": " + line + "\n")
		}
	}
	return b.String()
}

// without returns the lines of a that are not in b, counting repeated lines.
func without(a, b []string) []string {
	left := map[string]int{}
	for _, line := range b {
		left[line]++
	}
	var out []string
	for _, line := range a {
		if left[line] == 0 {
			out = append(out, line)
		} else {
			left[line]--
		}
	}
	return out
}

// containsAny reports whether line contains one of texts; true if there are none.
func containsAny(line string, texts []string) bool {
	return len(texts) == 0 || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(line, s) })
}

// firewall lists the rules without their counters; only root may ask.
func firewall(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		path, err := exec.LookPath(program)
		if err != nil || os.Getuid() != 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		rules, err := exec.CommandContext(ctx, path).Output()
		cancel()
		if err != nil {
			continue // such as a kernel without IPv6
		}
		table := ""
		for line := range strings.Lines(string(rules)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "*") {
				table = line
			}
			if strings.HasPrefix(line, "-") {
				out = append(out, program+" "+table+" "+line)
			}
		}
	}
	return out
}

// sandboxProcesses lists processes that mention a sandbox in their arguments, environment or working folder,
// except this process and its ancestors.
func sandboxProcesses(within []string) []string {
	if len(within) == 0 {
		within = []string{"sandboxer.", "sbx-", "sandboxer-host"}
	}
	all := processes()
	mine := ancestors(all)
	var out []string
	for _, p := range all {
		if mine[p.Pid] || p.comm == "sshd" || strings.HasPrefix(p.comm, "sshd-") {
			continue
		}
		cwd, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(p.Pid), "cwd"))
		if containsAny(p.Command+" "+strings.Join(p.env(), " ")+" "+cwd, within) {
			out = append(out, p.String())
		}
	}
	return out
}

func ancestors(all []Process) map[int]bool {
	parent := map[int]int{}
	for _, p := range all {
		parent[p.Pid] = p.parent
	}
	out := map[int]bool{}
	for pid := os.Getpid(); pid > 1 && !out[pid]; pid = parent[pid] {
		out[pid] = true
	}
	return out
}
