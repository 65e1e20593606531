package composessh

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// toolsFirst is a site whose sessions find these programs before all others.
func toolsFirst(t testing.TB, links map[string]string) *site {
	t.Helper()
	s := newSite(t, hosttest.WithConfig("SetEnv HOME=%DIR%/home PATH=%DIR%/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"))
	bin := filepath.Join(s.server.Dir, "bin")
	must(t, os.Mkdir(bin, 0o755))
	for name, to := range links {
		must(t, os.Symlink(to, filepath.Join(bin, name)))
	}
	return s
}

// wholeLife makes, looks at, extends and removes a sandbox.
func wholeLife(t *testing.T, s *site) {
	t.Helper()
	b := s.open(t)
	before := s.residue(t)
	spec := s.spec(t, exttest.WithWorkspace(extensions.AccessRW, map[string]string{"file": "content"}),
		exttest.WithSecret("TOKEN", "it's $HOME \"quoted\" \\n"))
	h := s.provision(t, b, spec)
	res, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: `cat file; printf ' %s' "$TOKEN"`})
	must(t, err)
	if got := string(res.Stdout); got != `content it's $HOME "quoted" \n` {
		t.Errorf("inside: %q", got)
	}
	until := time.Now().Add(2 * time.Hour)
	must(t, b.Extend(t.Context(), h, until))
	must(t, b.SetGeneration(t.Context(), h, 2))
	o := s.observe(t, b, h)
	if o.Phase != extensions.PhaseReady || o.Generation != 2 || o.Deadline.Sub(until).Abs() > time.Second {
		t.Errorf("%s generation %d until %s: %s", o.Phase, o.Generation, o.Deadline, o.Reason)
	}
	if _, _, err := b.Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindConflict) {
		t.Errorf("a former generation provisions again: %v", err)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestAHostOfBusybox(t *testing.T) {
	t.Parallel()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("no busybox here")
	}
	list, err := exec.CommandContext(t.Context(), busybox, "--list").Output()
	must(t, err)
	links := map[string]string{}
	for _, name := range strings.Fields(string(list)) {
		if name != "ip" && name != "nc" { // applets that only share a name with the host's
			links[name] = busybox
		}
	}
	wholeLife(t, toolsFirst(t, links))
}

func TestAHostWhoseShellIsBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	wholeLife(t, toolsFirst(t, map[string]string{"sh": bash}))
}

func TestALargeWorkspaceArrivesWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	noise := make([]byte, maxBuffered+1<<20)
	_, _ = rand.Read(noise)
	h := s.provision(t, b, s.spec(t, exttest.WithWorkspace(extensions.AccessRW,
		map[string]string{"big": string(noise), strings.Repeat("deep/", 40) + "file": "x"})))
	got, err := os.ReadFile(filepath.Join(s.root, string(h.ID), "workspace", "big"))
	must(t, err)
	if string(got) != string(noise) {
		t.Error("the large file arrived changed")
	}
}

func TestALoginWithoutDockerIsUnauthorized(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root lets others in")
	}
	s := newSite(t, hosttest.WithUser(ordinaryUser(t)), hosttest.WithConfig("UsePAM yes"))
	b := s.open(t)
	spec := s.spec(t)
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindUnauthorized) || !h.IsZero() || !strings.Contains(extensions.RemedyOf(err), "docker") {
		t.Errorf("%v (%s), handle %q", err, extensions.RemedyOf(err), h.Encode())
	}
	if _, err := b.Status(t.Context(), []extensions.Handle{b.handle(spec.ID)}); err == nil {
		t.Error("whether it is there could not be asked, and that is no error")
	}
	if _, err := b.Find(t.Context(), spec.ID); err == nil || extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("find without a right to look: %v", err)
	}
	if _, err := os.Stat(s.root); err == nil {
		t.Error("a folder is left")
	}
}

func TestADaemonThatIsDownIsUnavailableAndNothingIsAbsent(t *testing.T) {
	t.Parallel()
	s := newSite(t, hosttest.WithConfig("SetEnv HOME=%DIR%/home DOCKER_HOST=unix://%DIR%/no.sock"))
	b := s.open(t)
	spec := s.spec(t)
	h, _, err := b.Provision(t.Context(), spec)
	if !extensions.IsKind(err, extensions.KindUnavailable) || !h.IsZero() {
		t.Errorf("%v, handle %q", err, h.Encode())
	}
	if _, err := os.Stat(s.root); err == nil {
		t.Error("a folder is left")
	}
	h = b.handle(spec.ID)
	if all, err := b.Status(t.Context(), []extensions.Handle{h}); err == nil {
		t.Errorf("status says %s", all[0].Phase)
	}
	if _, err := b.Find(t.Context(), spec.ID); err == nil || extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("find: %v", err)
	}
	if _, err := b.Teardown(t.Context(), h); err == nil {
		t.Error("teardown says it is gone")
	}
}

func TestWhatAHostLacksIsTold(t *testing.T) {
	t.Parallel()
	const body = `
docker() { case $*:$age in
	info*) return 1 ;;
	version*) echo "$engine_says" ;;
	*:missing) echo "docker: 'compose' is not a docker command." >&2; return 1 ;;
	*) echo "$age" ;;
esac; }
answer() { printf '%s\n' "$1" | sed -e 's/.*"kind":"//' -e 's/".*//'; }
json_string() { printf '"%s"' "$1"; }
on_fail() { :; }
use_root
try() { engine_says=$1 age=$2; rm -f "$root/engine"; (check_engine && echo fine); }
try 20.10.24 2.0.0
try 29.1.0 v5.5.1
try 28.2.2 dev
try 19.03.15 2.0.0
try 24.0.1 1.29.2
try 24.0.1 missing
`
	inShells(t, []string{"engine"}, body, "fine\nfine\nfine\nunsupported\nunsupported\nunsupported")
}

func TestTheEngineIsAskedOnceForTheFactsAndTheCreatesAfterThem(t *testing.T) {
	t.Parallel()
	const body = `
docker() { case $* in
	info*) echo asked >>"$root/asked"; echo '28.0.1|THE:ID|v2.30.0 /usr/libexec/docker/cli-plugins/docker-compose|' ;;
	*) echo "docker $*" ;;
esac; }
fail() { echo "fail $*"; exit 1; }
use_root
mkdir -p "$root"
look() { rm -f "$root/engine" "$root/asked"; check_engine; echo "$engine $engine_id$(sed "s/^/ /" "$root/asked" 2>/dev/null)"; }
engine_started
read_clock
said=$(docker info)
engine_split
judge_engine
engine_seen=$(engine_note)
look
engine_seen="other-$engine_seen"
look
daemon=9999999
engine_seen=$(engine_note)
engine_started() { daemon=9999998; }
look
engine_seen=
look
later() { rm -f "$root/asked"; check_engine; echo "$engine $engine_id$(sed "s/^/ /" "$root/asked" 2>/dev/null)"; }
later
`
	const seen, asked = "28.0.1 THE:ID\n", "28.0.1 THE:ID asked\n"
	inShells(t, []string{"engine"}, body, strings.TrimSpace(seen+asked+asked+asked+seen))
}
