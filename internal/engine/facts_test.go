package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// probing is the stub vendor whose places tell what they offer when probed.
type probing struct {
	extensions.Extension
	handler string
	at      extensions.Place
	dir     string

	mu     sync.Mutex
	facts  map[string]extensions.Facts // by binding
	probes map[string]int              // by binding
	moved  int                         // calls of Extend
	down   bool
	hold   chan struct{} // what each probe waits for; nil = nothing
}

func (x *probing) Describe() extensions.Descriptor {
	d := x.Extension.Describe()
	d.Handler, d.Places, d.NamedOnly = x.handler, []extensions.Place{x.at}, false
	d.Powers = append(d.Powers, extensions.PowerProbe)
	return d
}

func (x *probing) Open(ctx context.Context, cfg extensions.Config) (extensions.Backend, error) {
	binding := cfg.Binding
	cfg.Values = map[string]any{"dir": filepath.Join(x.dir, binding)}
	b, err := x.Extension.Open(ctx, cfg)
	return probingBackend{b.(stubbed), x, binding}, err
}

// stubbed is what the tests use of the stub vendor's backend.
type stubbed interface {
	extensions.Backend
	extensions.Extender
	extensions.GenerationSetter
	extensions.CapacityReader
	extensions.UsageReader
}

type probingBackend struct {
	stubbed
	x       *probing
	binding string
}

func (b probingBackend) Probe(ctx context.Context) (extensions.Facts, []extensions.Observation, error) {
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	b.x.probes[b.binding]++
	if b.x.hold != nil {
		select {
		case <-b.x.hold:
		case <-ctx.Done():
			return extensions.Facts{}, nil, ctx.Err()
		}
	}
	if b.x.down {
		return extensions.Facts{}, nil, extensions.Errorf(extensions.KindUnsupported, "this account has no status page")
	}
	return b.x.facts[b.binding], nil, nil
}

func (b probingBackend) Extend(ctx context.Context, h extensions.Handle, end time.Time) error {
	b.x.mu.Lock()
	b.x.moved++
	b.x.mu.Unlock()
	return b.stubbed.Extend(ctx, h, end)
}

func (x *probing) set(binding string, f extensions.Facts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.facts[binding] = f
}

func (x *probing) asked(t *testing.T, binding string, want int) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.probes[binding] != want {
		t.Errorf("%s was probed %d times, want %d", binding, x.probes[binding], want)
	}
}

// factsBench is a ledger that several runs share, each with an engine of its own.
type factsBench struct {
	t       *testing.T
	x       *probing
	catalog map[string]string
	state   string
	now     time.Time
	*engine.Engine
}

func newFacts(t *testing.T, at extensions.Place, catalog map[string]string) *factsBench {
	t.Helper()
	b := &factsBench{t: t, catalog: catalog, state: t.TempDir(), now: time.Now(), x: &probing{Extension: saasstub.New(), handler: "probing",
		at: at, dir: t.TempDir(), facts: map[string]extensions.Facts{}, probes: map[string]int{}}}
	b.next(0)
	return b
}

// passes lets time pass, for the vendors too.
func (b *factsBench) passes(d time.Duration) {
	b.t.Helper()
	b.now = b.now.Add(d)
	for _, at := range []string{"ext.first", "ext.second"} {
		if err := vendor.At(filepath.Join(b.x.dir, at)).Advance(d); err != nil {
			b.t.Fatal(err)
		}
	}
}

// next is another run, some time later.
func (b *factsBench) next(later time.Duration) {
	b.t.Helper()
	b.passes(later)
	e, err := engine.New(engine.Options{Extensions: []extensions.Extension{b.x}, StateDir: b.state, Account: "acme/web",
		Catalog: []string{folder(b.t, b.catalog)}, Now: func() time.Time { return b.now }})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.t.Error(err)
		}
	})
	b.Engine = e
}

// makes creates a sandbox and ends it, and tells where it ran.
func (b *factsBench) makes(req engine.Request) (string, error) {
	b.t.Helper()
	s, err := b.Create(b.t.Context(), req, nil, nil)
	if err != nil {
		return "", err
	}
	if _, err := b.Destroy(b.t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
		b.t.Error(told(err))
	}
	return s.Extension, nil
}

func twoBindings(first, second string) map[string]string {
	return map[string]string{
		"extensions/ext.first.yaml":   "id: ext.first\nhandler: probing\nenabled: true\npriority: 10\n" + first,
		"extensions/ext.second.yaml":  "id: ext.second\nhandler: probing\nenabled: true\n" + second,
		"profiles/profile.any.yaml":   "id: profile.any\nversion: \"1.0.0\"\n" + common,
		"profiles/profile.first.yaml": "id: profile.first\nversion: \"1.0.0\"\nextension: ext.first\n" + common,
	}
}

// What one binding lacks on a host rules that binding out and no other.
func TestAMissingDockerRulesOutOnlyWhatNeedsIt(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceHost, twoBindings("", ""))
	machine := extensions.HostFacts{OS: "linux", Arch: "amd64", CPUs: 4, MemoryMB: 4096,
		Notes: []string{"Docker is missing"}, Unfit: []string{"Docker is missing"}}
	whole := extensions.HostFacts{OS: "linux", Arch: "amd64", CPUs: 4, MemoryMB: 4096, KVM: true,
		Isolation: []extensions.Isolation{extensions.IsolationMicroVM}}
	b.x.set("ext.first", extensions.Facts{Machine: &machine, Unfit: machine.Unfit})
	b.x.set("ext.second", extensions.Facts{Machine: &whole})
	host := onSSH(false)
	v, err := b.RegisterHost(t.Context(), host, "")
	if err != nil {
		t.Fatal(told(err))
	}
	if f := v.Facts; !f.KVM || f.CPUs != 4 || len(f.Isolation) != 1 || len(f.Notes) != 1 || len(f.Unfit) != 0 {
		t.Errorf("the host's facts are %+v", f)
	}
	on, err := b.makes(engine.Request{Profile: "profile.any", Name: "one", Hosts: []string{host.Ref()}})
	if err != nil || on != "ext.second" {
		t.Errorf("it ran at %q, %v", on, told(err))
	}
	b.x.asked(t, "ext.first", 1)
	b.x.asked(t, "ext.second", 1)
	_, err = b.makes(engine.Request{Profile: "profile.first", Name: "one", Hosts: []string{host.Ref()}})
	if text := told(err); !strings.Contains(text, "viability.host") || !strings.Contains(text, "Docker is missing") {
		t.Errorf("a sandbox that needs Docker: %s", text)
	}
	b.x.asked(t, "ext.first", 2) // its owner may have mended it
	b.x.asked(t, "ext.second", 1)
}

// A plan and a quote dial nothing. The first create at an account probes it, and
// later runs do not until the facts are old.
func TestAnAccountIsProbedAtItsFirstUseAndWhenThatIsOld(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceAccount, twoBindings("", ""))
	half := 30 * time.Minute
	b.x.set("ext.first", extensions.Facts{Narrowing: extensions.Narrowing{MaxTTL: &half},
		Notes: []string{"ttl: the account's plan ends after 30m; buy a larger one"}})
	short := engine.Request{Profile: "profile.first", Name: "one", TTL: "20m"}
	long := engine.Request{Profile: "profile.first", Name: "one", TTL: "45m"}
	for range 2 {
		if _, err := b.Plan(t.Context(), long); err != nil {
			t.Fatal(told(err))
		}
		if _, err := b.Quote(t.Context(), long, engine.QuoteOptions{}); err != nil {
			t.Fatal(told(err))
		}
		b.x.asked(t, "ext.first", 0)
	}
	if _, err := b.makes(short); err != nil {
		t.Fatal(told(err))
	}
	b.x.asked(t, "ext.first", 1)
	b.x.asked(t, "ext.second", 0)
	b.next(time.Hour)
	if _, err := b.makes(short); err != nil {
		t.Fatal(told(err))
	}
	b.x.asked(t, "ext.first", 1)
	_, err := b.makes(long)
	if text := told(err); !strings.Contains(text, "maximum of 30m") || !strings.Contains(text, "at this account: the account's plan") {
		t.Errorf("a ttl above what the account gives: %s", text)
	}
	b.x.asked(t, "ext.first", 2) // which left no place
	if _, err := b.Plan(t.Context(), long); err != nil {
		t.Errorf("facts changed a plan: %s", told(err))
	}
	b.next(25 * time.Hour)
	b.x.set("ext.first", extensions.Facts{}) // its owner bought a larger plan
	for _, req := range []engine.Request{short, long} {
		if _, err := b.makes(req); err != nil {
			t.Fatal(told(err))
		}
		b.x.asked(t, "ext.first", 3)
	}
}

// What an account lacks lets the next place be chosen before anything is made.
func TestFactsOfAnAccountLetTheNextPlaceBeChosen(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceAccount, twoBindings("", ""))
	b.x.set("ext.first", extensions.Facts{Unfit: []string{"billing is overdue"}})
	for range 2 {
		if on, err := b.makes(engine.Request{Profile: "profile.any", Name: "one"}); err != nil || on != "ext.second" {
			t.Errorf("it ran at %q, %v", on, told(err))
		}
		b.next(time.Minute)
	}
	b.x.asked(t, "ext.first", 1)
	b.x.asked(t, "ext.second", 1)
}

// An account that cannot be probed is used as it is declared.
func TestAProbeThatFailsStopsNothing(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceAccount, twoBindings("", ""))
	b.x.down = true
	if on, err := b.makes(engine.Request{Profile: "profile.first", Name: "one"}); err != nil || on != "ext.first" {
		t.Errorf("it ran at %q, %v", on, told(err))
	}
	b.x.asked(t, "ext.first", 1)
}

// Facts hold for the binding's config and the host's arguments that were probed.
func TestAnotherConfigIsAnotherPlace(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceHost, twoBindings("", ""))
	host := onSSH(false)
	if _, err := b.RegisterHost(t.Context(), host, ""); err != nil {
		t.Fatal(told(err))
	}
	first := engine.Request{Profile: "profile.first", Name: "one", Hosts: []string{host.Ref()}}
	if _, err := b.makes(first); err != nil {
		t.Errorf("a host that lacks nothing: %v", told(err))
	}
	b.x.asked(t, "ext.first", 1)
	b.catalog["extensions/ext.first.yaml"] += "config: { region: eu }\n"
	b.x.set("ext.first", extensions.Facts{Unfit: []string{"the engine is too old"}})
	b.next(time.Minute)
	if _, err := b.makes(first); !strings.Contains(told(err), "too old") {
		t.Errorf("with another config: %v", told(err))
	}
	b.x.asked(t, "ext.first", 2)
	b.x.set("ext.first", extensions.Facts{Unfit: []string{"nobody should look"}})
	other := host
	other.Priority = 3 // not registered: nobody has looked, and nobody has to
	if _, err := b.makes(engine.Request{Profile: "profile.first", Name: "one", Hosts: []string{other.Ref()}}); err != nil {
		t.Errorf("with other arguments: %s", told(err))
	}
	b.x.asked(t, "ext.first", 2)
}

// Facts count for a change too: a power that the account lacks is not asked for.
func TestAChangeKnowsWhatTheAccountLacks(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceAccount, twoBindings("", ""))
	without := extensions.Facts{Powers: []extensions.Power{extensions.PowerCapacity, extensions.PowerGenerationSet, extensions.PowerProbe}}
	b.x.set("ext.first", without)
	req := engine.Request{Profile: "profile.first", Name: "one", TTL: "20m"}
	s, err := b.Create(t.Context(), req, nil, nil)
	if err != nil {
		t.Fatal(told(err))
	}
	longer := req
	longer.TTL = "40m"
	if _, err := b.PlanUpdate(t.Context(), s.Receipt, req, longer); err != nil {
		t.Errorf("facts changed a plan: %s", told(err))
	}
	if _, err := b.Update(t.Context(), s.Receipt, longer, nil); !extensions.IsKind(err, extensions.KindUnsupported) {
		t.Errorf("a longer ttl: %v", told(err))
	}
	if now, err := b.Get(t.Context(), s.Receipt); err != nil || !now.ExpiresAt.Equal(s.ExpiresAt) {
		t.Errorf("it ends at %s, before that at %s: %v", now.ExpiresAt, s.ExpiresAt, err)
	}
	if _, err := b.Destroy(t.Context(), s.Receipt, engine.DestroyOptions{}); err != nil {
		t.Error(told(err))
	}
}

// A registered host that nobody could look at is not taken for the machine that a
// profile demands.
func TestADemandedMachineThatCannotBeProbedIsRefused(t *testing.T) {
	t.Parallel()
	files := twoBindings("", "")
	files["profiles/profile.arm.yaml"] = "id: profile.arm\nversion: \"1.0.0\"\nextension: ext.first\nrequires: { arch: [arm64] }\n" + common
	b := newFacts(t, extensions.PlaceHost, files)
	host := onSSH(false)
	if _, err := b.RegisterHost(t.Context(), host, ""); err != nil {
		t.Fatal(told(err))
	}
	b.catalog["extensions/ext.first.yaml"] += "config: { region: eu }\n" // which nobody has probed
	b.x.down = true
	b.next(time.Minute)
	on, err := b.makes(engine.Request{Profile: "profile.arm", Name: "one", Hosts: []string{host.Ref()}})
	if text := told(err); !strings.Contains(text, "could not be probed") || !strings.Contains(text, "no status page") {
		t.Errorf("it ran at %q: %s", on, text)
	}
}

// Where an account cannot move a deadline, a create sends the sandbox's own at once.
func TestNoShortFirstDeadlineWhereTheAccountCannotMoveIt(t *testing.T) {
	t.Parallel()
	b := newFacts(t, extensions.PlaceAccount, twoBindings("", ""))
	b.x.Extension = saasstub.NewEventual()
	b.next(0)
	req := engine.Request{Profile: "profile.first", Name: "one"}
	b.x.set("ext.first", extensions.Facts{Powers: []extensions.Power{extensions.PowerCapacity, extensions.PowerGenerationSet}})
	if _, err := b.makes(req); err != nil || b.x.moved != 0 {
		t.Errorf("the deadline was moved %d times: %v", b.x.moved, told(err))
	}
	b.x.set("ext.first", extensions.Facts{})
	b.next(25 * time.Hour)
	if _, err := b.makes(req); err != nil || b.x.moved == 0 {
		t.Errorf("the deadline was moved %d times: %v", b.x.moved, told(err))
	}
}
