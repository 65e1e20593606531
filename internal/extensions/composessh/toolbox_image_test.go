package composessh

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// An image that stands under the toolbox's name is not run: what it sets would
// reach the host's programs.
func TestAnImageOfTheToolboxsNameIsNotTheToolbox(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	for what, file := range map[string]string{
		"variables":  "FROM scratch\nLABEL sandboxer.toolbox=1\nENV LD_PRELOAD=/evil.so\nCOPY f /\n",
		"files":      "FROM scratch\nLABEL sandboxer.toolbox=1\nCOPY f /f\n",
		"a command":  "FROM scratch\nLABEL sandboxer.toolbox=1\nCMD [\"x\"]\n",
		"an entry":   "FROM scratch\nLABEL sandboxer.toolbox=1\nENTRYPOINT [\"x\"]\n",
		"a volume":   "FROM scratch\nLABEL sandboxer.toolbox=1\nVOLUME /usr\n",
		"a check":    "FROM scratch\nLABEL sandboxer.toolbox=1\nHEALTHCHECK CMD x\nCOPY f /\n",
		"its labels": "FROM scratch\nLABEL sandboxer.toolbox=1 sandboxer.id=sbx-x\n",
		"no label":   "FROM scratch\nCOPY f /f\n",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "boxes")
			sum := exec.Command("cksum")
			sum.Stdin = strings.NewReader(root)
			out, err := sum.Output()
			must(t, err)
			tag := "sandboxer.invalid/toolbox:" + strings.Fields(string(out))[0]
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(file), 0o644))
			must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(what), 0o644))
			cmd := exec.CommandContext(t.Context(), "docker", "build", "-q", "--no-cache", "-t", tag, dir)
			cmd.Env = append(os.Environ(), "DOCKER_BUILDKIT=0")
			var said strings.Builder
			cmd.Stderr = &said
			built, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			planted := strings.TrimSpace(string(built))
			t.Cleanup(func() {
				_ = exec.Command("docker", "rmi", "-f", tag).Run()
				_ = exec.Command("docker", "rmi", "-f", planted).Run()
			})
			script := "root=" + root + " id=sbx-x\n" + standIn + "\n" + script("toolbox") + `
toolbox_known && echo "taken for the toolbox"
toolbox_run -- sh -c 'echo "ran with [$LD_PRELOAD]"; ls /f 2>/dev/null'
echo "$toolbox"
toolbox_release
docker image inspect "$toolbox_tag" >/dev/null 2>&1 && echo left
:`
			got, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(got)), "\n")
			if err != nil || len(lines) != 2 || lines[0] != "ran with []" || lines[1] == planted || !strings.HasPrefix(lines[1], "sha256:") {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}

// A process's network is not entered on its number's word.
func TestOnlyTheContainersOwnNetworkIsOpened(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	if os.Getuid() != 0 {
		t.Skip("only root enters a container's network")
	}
	name := "sandboxer-test-" + strings.ToLower(randomName())
	container := docker(t, "run", "-d", "--rm", "--name", name, "--network", "none", "--label", "sandboxer.test="+name, "--stop-signal",
		"KILL", hosttest.Image(t), "sleep", "1000")
	t.Cleanup(func() { docker(t, "rm", "-f", name) })
	pid := docker(t, "inspect", "-f", "{{.State.Pid}}", container)
	inShells(t, []string{"toolbox"}, `
network_open `+pid+` `+container+` && nsenter --net=/proc/self/fd/5 sh -c 'grep -c : /proc/net/dev'
exec 5<&-
network_open $$ `+container+` && echo "this shell's own"
network_open 1 `+container+` && echo "the first process's"
network_open 0 `+container+` && echo "none's"
network_open '' `+container+` && echo "nobody's"
[ ! -e /proc/$$/fd/5 ] || echo "left open"
`, "1")
}
