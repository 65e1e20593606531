package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// crashes are services that cannot work, and how they find that out. What the
// test image lacks is the machine's own, mounted.
var crashes = []struct {
	name    string
	program string // of the machine; "" = the image's
	command []string
}{
	{"sh, a command fails", "", []string{"sh", "-ec", "cd /var/www; test -f config.yaml; exec httpd -f"}},
	{"sh, the database refuses", "", []string{"sh", "-ec", "nc -w 60 127.0.0.1 5432"}},
	{"sh, the database's name is unknown", "", []string{"sh", "-ec", "nc -w 60 db 5432"}},
	{"sh, three tries a second apart", "", []string{"sh", "-c", "for i in 1 2 3; do nc -w 1 127.0.0.1 5432 && exit 0; sleep 1; done; exit 1"}},
	{"python, a module is missing", "/usr/bin/python3",
		[]string{"/usr/bin/python3", "-c", "import asyncio, ssl, sqlite3, http.server, json, nosuchmodule"}},
	{"python, the database refuses", "/usr/bin/python3",
		[]string{"/usr/bin/python3", "-c", "import asyncio, ssl, sqlite3, http.server, socket; socket.create_connection(('127.0.0.1', 5432))"}},
	{"python, the database's name is unknown", "/usr/bin/python3",
		[]string{"/usr/bin/python3", "-c", "import asyncio, ssl, sqlite3, http.server, socket; socket.create_connection(('db', 5432))"}},
	{"node, a module is missing", "/usr/bin/node", []string{"/usr/bin/node", "-e", "require('http'); require('nosuchmodule')"}},
	{"node, the database refuses", "/usr/bin/node",
		[]string{"/usr/bin/node", "-e", "require('http'); require('net').connect(5432, '127.0.0.1')"}},
	{"node, the database's name is unknown", "/usr/bin/node",
		[]string{"/usr/bin/node", "-e", "require('http'); require('net').connect(5432, 'db')"}},
}

// BenchmarkCrashes prints how long after their own start services that cannot
// work have ended, by the engine's own times: one by one, and eight at once.
// The time that a stack gets to settle follows from it.
func BenchmarkCrashes(b *testing.B) {
	image := hosttest.Image(b)
	network := fmt.Sprintf("crashes%d", os.Getpid())
	engine(b, "network", "create", "--internal", "--subnet", "10.229.255.0/28", network)
	b.Cleanup(func() { engine(b, "network", "rm", network) })
	rounds := list(b, "SANDBOXER_BENCH_ROUNDS", "5")[0]
	fmt.Fprintf(os.Stdout, "\n%-42s %10s %21s %10s %21s\n", "service", "alone", "spread", "of eight", "spread")
	for _, c := range crashes {
		if _, err := os.Stat(c.program); c.program != "" && err != nil {
			fmt.Fprintf(os.Stdout, "%-42s not on this machine: %s\n", c.name, c.program)
			continue
		}
		var one, many []time.Duration
		for range rounds {
			one = append(one, lives(b, image, network, c.command, 1)...)
			many = append(many, lives(b, image, network, c.command, 8)...)
		}
		spread := func(v []time.Duration) string {
			return fmt.Sprintf("%s - %s", round(slices.Min(v)), round(slices.Max(v)))
		}
		fmt.Fprintf(os.Stdout, "%-42s %10s %21s %10s %21s\n", c.name, round(median(one)), spread(one), round(median(many)), spread(many))
	}
}

// lives runs n containers at once and returns how long each lived.
func lives(b *testing.B, image, network string, command []string, n int) []time.Duration {
	b.Helper()
	args := []string{"create", "--network", network, "--dns", "127.0.0.1"}
	for _, dir := range []string{"/usr", "/lib", "/lib64"} {
		if _, err := os.Stat(dir); err == nil && strings.HasPrefix(command[0], "/") {
			args = append(args, "-v", dir+":"+dir+":ro")
		}
	}
	args = append(append(args, image), command...)
	ids := make([]string, n)
	for i := range ids {
		ids[i] = engine(b, args...)
	}
	defer engine(b, append([]string{"rm", "-f"}, ids...)...)
	engine(b, append([]string{"start"}, ids...)...)
	codes := strings.Fields(engine(b, append([]string{"wait"}, ids...)...))
	took := make([]time.Duration, n)
	for i, id := range ids {
		times := strings.Fields(engine(b, "inspect", "--format", "{{.State.StartedAt}} {{.State.FinishedAt}}", id))
		start, err := time.Parse(time.RFC3339Nano, times[0])
		end, err2 := time.Parse(time.RFC3339Nano, times[1])
		if err != nil || err2 != nil || codes[i] == "0" {
			b.Fatalf("%q ended with %s: %v %v", command, codes[i], err, err2)
		}
		took[i] = end.Sub(start)
	}
	return took
}

func engine(b *testing.B, args ...string) string {
	b.Helper()
	var stderr strings.Builder
	cmd := exec.CommandContext(context.WithoutCancel(b.Context()), "docker", args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("docker %s: %v: %s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
