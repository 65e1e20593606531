package engine_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/composessh"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/docker"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local"
)

func requiring(name, what string) string {
	return "id: profile." + name + "\nversion: \"1.0.0\"\nisolation: { level: none }\nnetwork: { default: deny }\nttl: { default: 10m }\n" +
		what + "\n"
}

// refusals quotes a profile and returns the rule that refused each place.
func refusals(t *testing.T, e *engine.Engine, req engine.Request) (refused map[string]string, first string) {
	t.Helper()
	q, err := e.Quote(context.Background(), req, engine.QuoteOptions{})
	if len(q.Estimate.Candidates) == 0 {
		t.Fatal(told(err))
	}
	refused = map[string]string{}
	for _, c := range q.Estimate.Candidates {
		switch {
		case !c.Eligible:
			refused[c.Extension] = c.Refusals[0].Rule
		case first == "":
			first = c.Extension
		}
	}
	return refused, first
}

// What the real extensions have, they have without an operator's word.
func TestTheRealPlacesProvideWhatTheyHave(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for name, kinds := range map[string]string{
		"both": "git, full-history-clone, workarea, long-running, network-egress", "here": "host-binary", "there": "persistent-storage, image",
		"none": `"toolchain:go"`, "accelerated": "gpu",
	} {
		files["profiles/profile."+name+".yaml"] = requiring(name, "requires: { capabilities: ["+kinds+"] }")
		files["profiles/profile."+name+"-stack.yaml"] = requiring(name+"-stack",
			"image: { pull: busybox }\nrequires: { capabilities: ["+kinds+"] }")
	}
	e := catalogEngine(t, files)
	host := onSSH(false).Ref()
	for name, want := range map[string][2]string{ // the rule that refuses ext.local, ext.compose-ssh
		"both": {"", ""}, "here": {"", "viability.requires.capability"}, "there": {"viability.requires.capability", ""},
		"none":        {"viability.requires.capability", "viability.requires.capability"},
		"accelerated": {"viability.requires.capability", "viability.requires.capability"},
	} {
		if got, _ := refusals(t, e, engine.Request{Profile: "profile." + name}); got["ext.local"] != want[0] {
			t.Errorf("%s: ext.local is refused by %q, want %q", name, got["ext.local"], want[0])
		}
		if got, _ := refusals(t, e, engine.Request{Profile: "profile." + name + "-stack",
			Hosts: []string{host}}); got["ext.compose-ssh"] != want[1] {
			t.Errorf("%s: ext.compose-ssh is refused by %q, want %q", name, got["ext.compose-ssh"], want[1])
		}
	}
}

func TestABindingAddsToWhatItsExtensionDeclaresUnlessItReplacesIt(t *testing.T) {
	t.Parallel()
	e := catalogEngine(t, map[string]string{
		"profiles/profile.tools.yaml": requiring("tools", `requires: { capabilities: ["toolchain:go", git], runtime: [npm, native] }`),
		"extensions/ext.more.yaml": "id: ext.more\nhandler: local\nruntime_provides: { runtime_kinds: [npm], requirement_kinds: " +
			"[\"toolchain:go\"] }\n",
		"extensions/ext.instead.yaml": "id: ext.instead\nhandler: local\nruntime_provides: { replace: true, runtime_kinds: [npm, native], " +
			"requirement_kinds: [\"toolchain:go\"] }\n",
		"extensions/ext.declared.yaml": "id: ext.declared\nhandler: local\nruntime_provides: null\n",
	})
	got, chosen := refusals(t, e, engine.Request{Profile: "profile.tools"})
	if chosen != "ext.more" || got["ext.instead"] != "viability.requires.capability" || got["ext.declared"] == "" || got["ext.local"] == "" {
		t.Errorf("chosen %q, refused %v", chosen, got)
	}
}

func TestThisMachineIsOfOneKind(t *testing.T) {
	t.Parallel()
	other := map[string]string{"linux": "darwin"}[runtime.GOOS]
	if other == "" {
		other = "linux"
	}
	e := catalogEngine(t, map[string]string{
		"profiles/profile.this.yaml":  requiring("this", "requires: { os: "+runtime.GOOS+", arch: [s390x, "+runtime.GOARCH+"] }"),
		"profiles/profile.os.yaml":    requiring("os", "requires: { os: "+other+" }"),
		"profiles/profile.arch.yaml":  requiring("arch", "requires: { arch: ppc64le }"),
		"profiles/profile.uname.yaml": requiring("uname", "requires: { arch: [x86_64, aarch64] }"),
	})
	for name, want := range map[string]string{"this": "", "os": "viability.requires.os", "arch": "viability.requires.arch"} {
		if got, _ := refusals(t, e, engine.Request{Profile: "profile." + name}); got["ext.local"] != want {
			t.Errorf("%s: refused by %q, want %q", name, got["ext.local"], want)
		}
	}
	if got, _ := refusals(t, e, engine.Request{Profile: "profile.uname"}); (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64") &&
		got["ext.local"] != "" {
		t.Errorf("as uname names it: %v", got)
	}
}

func TestALoginSessionIsOnThisMachineAlone(t *testing.T) {
	t.Parallel()
	e := catalogEngine(t, map[string]string{
		"profiles/profile.session.yaml": requiring("session", "route: { constraints: { auth_mode: host-session } }"),
	})
	got, chosen := refusals(t, e, engine.Request{Profile: "profile.session"})
	if chosen != "ext.local" {
		t.Errorf("chosen %q, refused %v", chosen, got)
	}
	got, _ = refusals(t, e, engine.Request{Profile: "profile.session", Hosts: []string{onSSH(false).Ref()}})
	if got["ext.compose-ssh"] != "intent.auth-mode" {
		t.Errorf("on a host over SSH: %v", got)
	}
}

// A create knows a host's kind: as it was recorded, else by looking.
func TestAHostOfAnotherKindIsRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	b := newHosts(t, map[string]string{
		"profiles/profile.arm.yaml":   strings.Replace(requiring("arm", "requires: { os: linux, arch: arm64 }"), "none", "container", 1),
		"profiles/profile.intel.yaml": strings.Replace(requiring("intel", "requires: { os: linux, arch: amd64 }"), "none", "container", 1),
	})
	ctx := context.Background()
	for _, name := range []string{"not looked at", "registered"} {
		if name == "registered" {
			if _, err := b.LookupHost(ctx, "far"); !extensions.IsKind(err, extensions.KindNotFound) {
				t.Errorf("a host that a create looked at is registered: %v", err)
			}
			if _, err := b.RegisterHost(ctx, onSSH(true), ""); err != nil {
				t.Fatal(err)
			}
		}
		req := engine.Request{Profile: "profile.arm", Hosts: []string{onSSH(true).Ref()}}
		if _, err := b.Plan(ctx, req); err != nil {
			t.Errorf("%s: a plan does not know: %s", name, told(err))
		}
		s, err := b.Create(ctx, req, nil, nil)
		if text := told(err); s.ID != "" || !strings.Contains(text, "viability.requires.arch") ||
			!strings.Contains(text, "its architecture is amd64") {
			t.Errorf("%s: %s", name, text)
		}
		req.Profile = "profile.intel"
		s, err = b.Create(ctx, req, nil, nil)
		if err != nil {
			t.Fatalf("%s: of the right kind: %s", name, told(err))
		}
		b.end(s)
	}
	b.x.setDown("far")
	b.Engine = b.machine()
	s, err := b.Create(ctx, engine.Request{Profile: "profile.arm", Hosts: []string{onSSH(true).Ref()}}, nil, nil)
	if text := told(err); s.ID != "" || !strings.Contains(text, "could not be probed") {
		t.Errorf("a host that does not answer: %s", text)
	}
}

// What an engine on this machine runs need not be of this machine's kind: it may be in a virtual machine, or far away.
func TestAnEngineOnThisMachineIsOfTheKindThatItsProbeFound(t *testing.T) {
	t.Parallel()
	other := map[string]string{"amd64": "arm64"}[runtime.GOARCH]
	if other == "" {
		other = "amd64"
	}
	archs := map[string]string{"": other, "far": runtime.GOARCH}
	x := &hooked{handler: "engined", says: func(d *extensions.Descriptor) {
		d.Places, d.NamedOnly = []extensions.Place{extensions.PlaceMachine, extensions.PlaceHost}, false
		d.Capabilities.Arch, d.Powers = []string{"*"}, append(d.Powers, extensions.PowerProbe)
	}, does: func(c *calls, cfg extensions.Config) {
		c.Probe = func(context.Context) (extensions.Facts, []extensions.Observation, error) {
			on := ""
			if cfg.Host != nil {
				on = cfg.Host.Name
			}
			if archs[on] == "" {
				return extensions.Facts{}, nil, extensions.Errorf(extensions.KindUnreachable, "nothing listens")
			}
			return extensions.Facts{Machine: &extensions.HostFacts{OS: "linux", Arch: archs[on]},
				Narrowing: extensions.Narrowing{OS: []string{"linux"}, Arch: []string{archs[on]}}}, nil, nil
		}
	}}
	b := newBench(t, onFiles(map[string]string{
		"extensions/ext.engined.yaml": "id: ext.engined\nhandler: engined\n",
		"profiles/profile.this.yaml":  strings.Replace(requiring("this", "requires: { arch: "+runtime.GOARCH+" }"), "none", "container", 1),
		"profiles/profile.other.yaml": strings.Replace(requiring("other", "requires: { arch: "+other+" }"), "none", "container", 1),
		"profiles/profile.any.yaml":   strings.Replace(requiring("any", ""), "none", "container", 1),
	}), func(b *bench) { b.Extensions = []extensions.Extension{x} })
	ctx := t.Context()
	for _, profile := range []string{"profile.this", "profile.other"} {
		if _, err := b.Plan(ctx, engine.Request{Profile: profile}); err != nil {
			t.Errorf("%s: a plan does not know: %s", profile, told(err))
		}
	}
	s, err := b.Create(ctx, engine.Request{Profile: "profile.this"}, nil, nil)
	if text := told(err); s.ID != "" || !strings.Contains(text, "its architecture is "+other) {
		t.Errorf("of this machine's kind: %s", text)
	}
	s, err = b.Create(ctx, engine.Request{Profile: "profile.other"}, nil, nil)
	if err != nil {
		t.Fatalf("of the engine's kind: %s", told(err))
	}
	b.end(s)

	far := onSSH(false)
	if _, err := b.RegisterHost(ctx, far, ""); err != nil {
		t.Fatal(told(err))
	}
	s, err = b.Create(ctx, engine.Request{Profile: "profile.any", Hosts: []string{far.Ref()}}, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	snap, err := b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "far"})
	if err != nil {
		t.Fatal(told(err))
	}
	b.end(s)
	s, err = b.Create(ctx, engine.Request{Profile: "profile.any", FromSnapshot: snap.ID}, nil, nil)
	if text := told(err); s.ID != "" || !strings.Contains(text, "intent.origin") || !strings.Contains(text, "this place is "+other) {
		t.Errorf("a snapshot of another kind of machine: %s", text)
	}
	if s, err = b.Create(ctx, engine.Request{Profile: "profile.any"}, nil, nil); err != nil {
		t.Fatal(told(err))
	}
	if snap, err = b.Snapshot(ctx, s.Receipt, engine.SnapshotRequest{Name: "near"}); err != nil {
		t.Fatal(told(err))
	}
	b.end(s)
	s, err = b.Create(ctx, engine.Request{Profile: "profile.any", FromSnapshot: snap.ID, Hosts: []string{far.Ref()}}, nil, nil)
	if text := told(err); s.ID != "" || !strings.Contains(text, "which is "+other+", and this place is "+runtime.GOARCH) {
		t.Errorf("a snapshot of the engine's kind, at a host of this machine's: %s", text)
	}

	archs[""] = ""
	s, err = b.Create(ctx, engine.Request{Profile: "profile.other"}, nil, nil)
	if text := told(err); s.ID != "" || !strings.Contains(text, "ext.engined could not be probed") {
		t.Errorf("an engine that does not answer: %s", text)
	}
}

func TestOnlyProcessesOfThisMachineShareItsNetwork(t *testing.T) {
	t.Parallel()
	e := newBench(t, onFiles(map[string]string{
		"profiles/profile.inside.yaml": "id: profile.inside\nversion: \"1.0.0\"\nextends: profile.container\nnetwork: { default: allow }\n",
		"profiles/profile.here.yaml":   "id: profile.here\nversion: \"1.0.0\"\nextends: profile.quickstart\nnetwork: { default: allow }\n",
		"profiles/profile.shut.yaml":   "id: profile.shut\nversion: \"1.0.0\"\nextends: profile.quickstart\n",
	}), func(b *bench) { b.Extensions = append(all(), docker.New()) })
	for name, shares := range map[string]bool{"profile.inside": false, "profile.here": true, "profile.shut": false} {
		p, err := e.Plan(t.Context(), engine.Request{Profile: name})
		if err != nil || strings.Contains(notices(p.Notices), "shares the machine's network") != shares {
			t.Errorf("%s tells %s, %v", name, notices(p.Notices), told(err))
		}
	}
}

// catalogEngine is an engine over the real extensions and files of a catalog.
func catalogEngine(t *testing.T, files map[string]string) *engine.Engine {
	t.Helper()
	return newBench(t, onFiles(files), func(b *bench) { b.Extensions = []extensions.Extension{local.New(), composessh.New()} }).Engine
}
