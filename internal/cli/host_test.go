package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The fingerprint is that of `ssh-keygen -l` for the same line.
func TestAHostIsShownByItsFingerprint(t *testing.T) {
	t.Parallel()
	const line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	const want = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"
	for name, c := range map[string]struct {
		ssh  extensions.SSH
		want []string
	}{
		"pinned": {extensions.SSH{Address: "10.0.0.5", Port: 2222, User: "sandbox", HostKey: line},
			[]string{"sandbox@10.0.0.5 port 2222", "pinned, " + want}},
		"CA":     {extensions.SSH{Alias: "build", HostCA: "@cert-authority * " + line + " me"}, []string{"build", "signed by the CA " + want}},
		"file":   {extensions.SSH{Address: "::1", KnownHosts: "/etc/known"}, []string{"::1", "in /etc/known"}},
		"usual":  {extensions.SSH{Address: "a"}, []string{"a", "in ~/.ssh/known_hosts"}},
		"broken": {extensions.SSH{Address: "a", HostKey: "ssh-ed25519 nonsense"}, []string{"a", "invalid public key"}},
	} {
		v := viewOfHost(engine.HostView{Host: engine.Host{Name: "x", SSH: &c.ssh}})
		if v.Address != c.want[0] || !strings.Contains(v.HostKey, c.want[1]) {
			t.Errorf("%s: %q, %q", name, v.Address, v.HostKey)
		}
		if v.Usable {
			t.Errorf("%s: nothing can run where nothing was found", name)
		}
	}
}

func TestAListOfHostsTellsHowOldItIs(t *testing.T) {
	t.Parallel()
	probed := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	var out strings.Builder
	usable := hostRecord{hostView{Name: "build", Address: "me@10.0.0.5", Usable: true}, probed}
	here := hostRecord{hostView{Name: "here", Local: true}, probed}
	if err := printHosts(&out, []hostRecord{usable, here}, probed.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NAME", "build  me@10.0.0.5   usable    3h ago", "here   this machine  unusable  3h ago"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
