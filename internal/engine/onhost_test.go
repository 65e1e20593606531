package engine_test

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// hosted is the stub vendor as if it ran on a host of the user, with what
// such extensions add: a host narrows it, and it judges stacks beforehand.
type hosted struct {
	hooked
	facts extensions.HostFacts

	mu     sync.Mutex
	files  map[string]string // of the bundle that Provision was given
	listed int               // how often all sandboxes were asked for
	down   map[string]bool   // hosts that do not answer, by name
}

func (*hosted) says(d *extensions.Descriptor) {
	d.Places, d.NamedOnly = []extensions.Place{extensions.PlaceHost}, false
	d.Powers = []extensions.Power{extensions.PowerFork, extensions.PowerProbe}
	d.Config, d.Options, d.Credentials = nil, nil, nil
	d.Capabilities.FsSnapshot, d.Capabilities.CapacityQuery, d.Capabilities.ExtendTTL = false, false, extensions.ExtendNone
	d.Capabilities.Provides.RequirementKinds = append(d.Capabilities.Provides.RequirementKinds, "compose")
}

func (x *hosted) does(c *calls, cfg extensions.Config) {
	provision, status, find := c.Provision, c.Status, c.Find
	silent := func() error { return x.silent(cfg.Host.Name) }
	c.Probe = func(ctx context.Context) (extensions.Facts, []extensions.Observation, error) {
		if err := silent(); err != nil {
			return extensions.Facts{}, nil, err
		}
		all, err := status(ctx, nil)
		return x.found(), all, err
	}
	c.Status = func(ctx context.Context, handles []extensions.Handle) ([]extensions.Observation, error) {
		if handles == nil {
			x.mu.Lock()
			x.listed++
			x.mu.Unlock()
		}
		if err := silent(); err != nil {
			return nil, err
		}
		return status(ctx, handles)
	}
	c.Find = func(ctx context.Context, id extensions.ID) (extensions.Handle, error) {
		if err := silent(); err != nil {
			return extensions.Handle{}, err
		}
		return find(ctx, id)
	}
	c.Provision = func(ctx context.Context, spec extensions.Spec) (extensions.Handle, extensions.Observation, error) {
		if err := silent(); err != nil {
			return extensions.Handle{}, extensions.Observation{}, err
		}
		if spec.Compose != nil && spec.Compose.BundleSource != nil {
			files, err := unpack(ctx, spec.Compose.BundleSource)
			if err != nil {
				return extensions.Handle{}, extensions.Observation{}, err
			}
			x.mu.Lock()
			x.files = files
			x.mu.Unlock()
			spec.Compose = nil // the vendor runs none
		}
		return provision(ctx, spec)
	}
}

// silent is what a host that is down answers.
func (x *hosted) silent(host string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.down[host] {
		return nil
	}
	return extensions.Errorf(extensions.KindUnreachable, "nothing listens at %s", host).WithRemedy("start it")
}

func (*hosted) OnHost(c extensions.Capabilities, h extensions.Host) (extensions.Capabilities, []string) {
	if h.AllowFirewall {
		return c, nil
	}
	c.Egress = extensions.EgressDenyOnly
	return c, []string{"firewall rules are not allowed; set allow_firewall = true on the host"}
}

// found is what a probe of a host means for the binding.
func (x *hosted) found() extensions.Facts {
	f := extensions.Facts{Machine: &x.facts, Unfit: x.facts.Unfit}
	if x.facts.OS != "" && x.facts.Arch != "" {
		f.Narrowing.OS, f.Narrowing.Arch = []string{x.facts.OS}, []string{x.facts.Arch}
	}
	if x.facts.Egress != "" {
		f.Narrowing.Egress = &x.facts.Egress
		f.Notes = []string{"its firewall could not be used when it was probed"}
	}
	return f
}

func (*hosted) CheckSpec(ctx context.Context, _ extensions.Config, spec extensions.Spec) (notes []string, err error) {
	if spec.Compose == nil || spec.Compose.BundleSource == nil {
		return nil, nil
	}
	files, err := unpack(ctx, spec.Compose.BundleSource)
	switch {
	case err == nil && strings.Contains(files["compose.yaml"], "privileged"):
		err = extensions.Errorf(extensions.KindInvalid, "rule privileged: compose.yaml: a service is privileged")
	case strings.Contains(files["compose.yaml"], "restart"):
		notes = []string{"restart is left out, of web", "ports are shut, of web"}
	}
	return notes, err
}

func (x *hosted) setDown(hosts ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.down = map[string]bool{}
	for _, h := range hosts {
		x.down[h] = true
	}
}

func unpack(ctx context.Context, src extensions.WorkspaceSource) (map[string]string, error) {
	r, err := src.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out := map[string]string{}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		out[h.Name] = string(data)
	}
}

// hosts is a bench with the hosted extension alone.
type hosts struct {
	*bench
	x *hosted
}

func newHosts(t *testing.T, files map[string]string) hosts {
	t.Helper()
	x := &hosted{facts: extensions.HostFacts{OS: "linux", Arch: "amd64", Egress: extensions.EgressDenyOnly}}
	x.hooked = hooked{handler: "hosted", says: x.says, does: x.does}
	files["extensions/ext.hosted.yaml"] = "id: ext.hosted\ntitle: Hosted\nhandler: hosted\n"
	return hosts{newBench(t, onFiles(files), func(b *bench) { b.Extensions = []extensions.Extension{x} }), x}
}

const allowlisted = `id: profile.list
version: "1.0.0"
isolation: { level: container }
network: { default: deny, egress: ["10.2.0.0/16:443"] }
ttl: { default: 10m }
`

func onSSH(allow bool) engine.Host {
	return engine.Host{Name: "far", AllowFirewall: allow, SSH: &extensions.SSH{Address: "192.0.2.1", User: "u", HostKey: "ssh-ed25519 AAAA"}}
}

func TestAHostNarrowsWhatRoutingMayChoose(t *testing.T) {
	t.Parallel()
	b := newHosts(t, map[string]string{"profiles/profile.list.yaml": allowlisted})
	ctx := context.Background()
	plan := func(h engine.Host) error {
		_, err := b.Plan(ctx, engine.Request{Profile: "profile.list", Name: "one", Hosts: []string{h.Ref()}})
		return err
	}
	err := plan(onSSH(false))
	if text := told(err); !extensions.IsKind(err, extensions.KindUnsupported) || !strings.Contains(text, "viability.egress") ||
		!strings.Contains(text, "set allow_firewall = true") {
		t.Errorf("without allow_firewall: %s", text)
	}
	if err := plan(onSSH(true)); err != nil {
		t.Errorf("with allow_firewall: %s", told(err))
	}
	// What probing found is for the create alone: a plan is the same anywhere.
	if _, err := b.RegisterHost(ctx, onSSH(true), ""); err != nil {
		t.Fatal(err)
	}
	if err := plan(onSSH(true)); err != nil {
		t.Errorf("a plan after the host was probed: %s", told(err))
	}
	s, err := b.Create(ctx, engine.Request{Profile: "profile.list", Name: "one", Hosts: []string{onSSH(true).Ref()}}, nil, nil)
	if text := told(err); s.ID != "" || !strings.Contains(text, "viability.egress") || !strings.Contains(text, "when it was probed") {
		t.Errorf("a create on a host that cannot: %s", text)
	}
	// Its owner mends it: the next run finds out by itself.
	b.x.facts.Egress = ""
	b.Engine = b.reopen()
	mended, err := b.Create(ctx, engine.Request{Profile: "profile.list", Name: "one", Hosts: []string{onSSH(true).Ref()}}, nil, nil)
	if err != nil {
		t.Fatalf("a create on a mended host: %s", told(err))
	}
	b.end(mended)
	// Facts of a host with other arguments say nothing about this one.
	other := onSSH(true)
	other.Priority = 7
	made, err := b.Create(ctx, engine.Request{Profile: "profile.list", Name: "two", Hosts: []string{other.Ref()}}, nil, nil)
	if err != nil {
		t.Fatalf("a create on a host nobody looked at: %s", told(err))
	}
	b.end(made)
}

func told(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + " / " + extensions.RemedyOf(err)
}

func stackFiles(compose string) map[string]string {
	return map[string]string{
		"profiles/profile.base.yaml": "id: profile.base\nversion: \"1.0.0\"\nisolation: { level: container }\nnetwork: { default: deny }\n" +
			"ttl: { default: 10m }\ncompose: { file: compose.yaml, bundle: stack }\n",
		"profiles/profile.child.yaml":   "id: profile.child\nversion: \"1.0.0\"\nextends: profile.base\nttl: { default: 20m }\n",
		"profiles/stack/compose.yaml":   compose,
		"profiles/stack/web/Dockerfile": "FROM scratch\n",
	}
}

func TestTheBundleBesideTheProfileReachesTheBackend(t *testing.T) {
	t.Parallel()
	b := newHosts(t, stackFiles("services: {}\n"))
	ctx := context.Background()
	s, err := b.Create(ctx, engine.Request{Profile: "profile.child", Name: "one", Hosts: []string{onSSH(false).Ref()}}, nil, nil)
	if err != nil {
		t.Fatalf("create: %s", told(err))
	}
	if b.x.files["compose.yaml"] != "services: {}\n" || b.x.files["web/Dockerfile"] == "" {
		t.Errorf("the bundle held %q", b.x.files)
	}
	b.end(s)
}

func TestWhatAnExtensionRefusesIsRefusedAtPlanAndWritesNothing(t *testing.T) {
	t.Parallel()
	b := newHosts(t, stackFiles("services: { web: { privileged: true } }\n"))
	ctx := context.Background()
	req := engine.Request{Profile: "profile.child", Name: "one", Hosts: []string{onSSH(false).Ref()}}
	_, err := b.Plan(ctx, req)
	if text := told(err); !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(text, "rule privileged") ||
		extensions.FieldOf(err) != "profile" {
		t.Errorf("plan: %s (at %q)", text, extensions.FieldOf(err))
	}
	s, err := b.Create(ctx, req, func(engine.Sandbox) { t.Error("it was recorded") }, nil)
	if text := told(err); s.ID != "" || !strings.Contains(text, "rule privileged") {
		t.Errorf("create: %s", text)
	}
	if spools, err := filepath.Glob(filepath.Join(b.StateDir, "spool", "*")); err != nil || len(spools) > 0 {
		t.Errorf("left in the spool: %v, %v", spools, err)
	}
}

func TestABundleThatIsNotThereIsTold(t *testing.T) {
	t.Parallel()
	files := stackFiles("services: {}\n")
	delete(files, "profiles/stack/compose.yaml")
	delete(files, "profiles/stack/web/Dockerfile")
	b := newHosts(t, files)
	_, err := b.Plan(context.Background(), engine.Request{Profile: "profile.base", Name: "one", Hosts: []string{onSSH(false).Ref()}})
	if text := told(err); !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(text, filepath.Join("profiles", "stack")) ||
		!strings.Contains(text, "profile.base@1.0.0") {
		t.Errorf("plan: %s", text)
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(b.catalog, "profiles", "stack")); err != nil {
		t.Skip("no symbolic links here")
	}
	_, err = b.Plan(context.Background(), engine.Request{Profile: "profile.base", Name: "one", Hosts: []string{onSSH(false).Ref()}})
	if !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("a bundle that leaves the catalog by a link: %v", err)
	}
}

func TestAProxyImageIsPinned(t *testing.T) {
	t.Parallel()
	b := newHosts(t, map[string]string{})
	digest := strings.Repeat("0a", 32)
	for image, ok := range map[string]bool{
		"":                                     true,
		"squid@sha256:" + digest:               true,
		"r.io:5000/a/squid:6@sha256:" + digest: true,
		"squid:latest":                         false,
		"squid@sha256:abc":                     false,
		"-squid@sha256:" + digest:              false,
		"squid @sha256:" + digest:              false,
	} {
		h := onSSH(true)
		h.ProxyImage = image
		if err := b.CheckHost(h); (err == nil) != ok || err != nil && !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: %v", image, err)
		}
	}
	if err := b.CheckHost(engine.Host{Name: "here", Local: true, ProxyImage: "squid@sha256:" + digest}); err == nil {
		t.Error("this machine takes no proxy image")
	}
}

// Of two who register a host at once, both may, and one is told of the other.
func TestWhoRegistersAHostSecondIsTold(t *testing.T) {
	t.Parallel()
	b := newHosts(t, map[string]string{"profiles/profile.list.yaml": allowlisted})
	host := onSSH(true)
	var wg sync.WaitGroup
	told := make(chan error, 8)
	for range cap(told) {
		wg.Go(func() {
			v, err := b.RegisterHost(context.Background(), host, "")
			if err != nil {
				t.Error(err)
			}
			told <- v.Shared
		})
	}
	wg.Wait()
	close(told)
	shared := 0
	for err := range told {
		if err == nil {
			continue
		}
		if shared++; !extensions.IsKind(err, extensions.KindConflict) || !strings.Contains(err.Error(), "with the same arguments") {
			t.Error(err)
		}
	}
	if shared != cap(told)-1 {
		t.Errorf("%d of %d were told", shared, cap(told))
	}
	// Who had it already registers nothing new.
	if v, err := b.RegisterHost(context.Background(), host, host.Ref()); err != nil || v.Shared != nil {
		t.Errorf("%v, %v", v.Shared, err)
	}
	if err := b.HostShared(context.Background(), host); !extensions.IsKind(err, extensions.KindConflict) {
		t.Error(err)
	}
	other := host
	other.Priority = 7
	if err := b.HostShared(context.Background(), other); err != nil {
		t.Error(err)
	}
}

// A refresh asks for the host and then for what is on it: one question does.
func TestProbingAHostTellsWhatIsOnIt(t *testing.T) {
	t.Parallel()
	b := newHosts(t, map[string]string{"profiles/profile.list.yaml": allowlisted})
	b.x.facts.Egress = ""
	ctx := context.Background()
	host := onSSH(true)
	if _, err := b.RegisterHost(ctx, host, ""); err != nil {
		t.Fatal(err)
	}
	one := b.create(engine.Request{Profile: "profile.list", Name: "one", Hosts: []string{host.Ref()}})
	listed := func() int {
		b.x.mu.Lock()
		defer b.x.mu.Unlock()
		return b.x.listed
	}
	b.Engine = b.reopen()
	if _, err := b.GetHost(ctx, host); err != nil {
		t.Fatal(err)
	}
	before := listed()
	if s, err := b.Get(ctx, one.Receipt); err != nil || s.State != "ready" {
		t.Fatalf("%s, %v", s.State, err)
	}
	if n := listed() - before; n != 0 {
		t.Errorf("after the host was probed its sandboxes were listed %d times", n)
	}
	b.end(one)
	if s, err := b.Get(ctx, one.Receipt); !extensions.IsKind(err, extensions.KindNotFound) {
		t.Errorf("after its end it is %s, %v", s.State, err)
	}
}

// A host on which nothing can run is refused for that, whatever the profile asks of
// its network, and is looked at again by the next run.
func TestAHostThatIsNotWellIsRefusedForWhatItLacks(t *testing.T) {
	t.Parallel()
	shut := strings.Replace(allowlisted, `, egress: ["10.2.0.0/16:443"]`, "", 1)
	b := newHosts(t, map[string]string{"profiles/profile.list.yaml": shut,
		"profiles/profile.free.yaml": strings.NewReplacer("profile.list", "profile.free", "deny", "allow").Replace(shut)})
	ctx := context.Background()
	h := onSSH(true)
	lack := "Docker is missing; install Docker Engine"
	b.x.facts = extensions.HostFacts{OS: "linux", Egress: extensions.EgressNone, Notes: []string{lack}, Unfit: []string{lack}}
	if _, err := b.RegisterHost(ctx, h, ""); err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"profile.list", "profile.free"} {
		s, err := b.Create(ctx, engine.Request{Profile: profile, Name: "one", Hosts: []string{h.Ref()}}, nil, nil)
		text := told(err)
		if s.ID != "" || !strings.Contains(text, "viability.host") || !strings.Contains(text, lack) ||
			strings.Contains(text, "viability.egress") {
			t.Errorf("%s: %s", profile, text)
		}
	}
	b.x.facts = extensions.HostFacts{}
	b.Engine = b.reopen()
	s, err := b.Create(ctx, engine.Request{Profile: "profile.list", Name: "one", Hosts: []string{h.Ref()}}, nil, nil)
	if err != nil {
		t.Fatalf("on the mended host: %s", told(err))
	}
	b.end(s)
}
