package hosttest

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killedEnv makes the test binary one that is killed, with the sandbox of this name on a host of its own.
const killedEnv = "SANDBOXER_HOSTTEST_KILLED"

// A killed test runs no cleanup, and what it made must not live to its deadline: neither processes nor objects in Docker nor
// devices.
func TestAHostEndsWithKilledTests(t *testing.T) {
	t.Parallel()
	if id := os.Getenv(killedEnv); id != "" {
		s := SSHD(t)
		run(t, dial(t, s, s.Addr), "mkdir -p ~/boxes/"+id+"; setsid sleep 600 >/dev/null 2>&1 </dev/null &")
		fmt.Println("host", s.Dir)
		select {}
	}
	Docker(t)
	if os.Getuid() != 0 {
		skip(t, "a network device needs root")
	}
	random := strings.ToLower(rand.Text()[:20])
	id, device := "sbx-"+random, "sp"+random[:11]+"0"
	label := "com.docker.compose.project=" + id
	network, err := docker("network", "create", "--label", label, id)
	must(t, err)
	t.Cleanup(func() { _, _ = docker("network", "rm", network) })
	add := "ip link add " + device + " type dummy 2>/dev/null || ip link add " + device + " type ifb"
	must(t, exec.CommandContext(t.Context(), "sh", "-c", add).Run())
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "ip", "link", "del", device).Run() })

	host := killedHost(t, id)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		processes := host.Processes()
		_, folder := os.Stat(host.Dir)
		_, there := os.Stat("/sys/class/net/" + device)
		networks, err := docker("network", "ls", "-q", "--filter", "label="+label)
		must(t, err)
		if os.IsNotExist(folder) && os.IsNotExist(there) && len(processes) == 0 && networks == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left of a killed test: processes %v, its folder (%v), its device (%v), networks %q", processes, folder, there, networks)
		}
	}
}

// killedHost is the host of a test that was killed, on which something ran.
func killedHost(t *testing.T, id string) *Server {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), killedEnv+"="+id)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		dir, is := strings.CutPrefix(lines.Text(), "host ")
		if !is {
			said.WriteString(lines.Text() + "\n")
			continue
		}
		host := &Server{Dir: dir, HomeDir: filepath.Join(dir, "home")}
		if len(host.Processes()) == 0 {
			t.Error("nothing runs on the host that could be left")
		}
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		return host
	}
	_ = cmd.Wait()
	t.Fatalf("no host: %s", said.String())
	return nil
}
