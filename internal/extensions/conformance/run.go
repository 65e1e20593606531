package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NoSkipEnv, set to 1, turns a skip for lack of a hook into a failure.
const NoSkipEnv = "SANDBOXER_NO_SKIP"

// check is one promise of the contract.
type check struct {
	// name is "group/promise"; it is stable.
	name string
	// power limits the check to extensions that declare it; "" = all.
	power extensions.Power
	// secretsAs limits the check to extensions that deliver secrets this way; "" = all.
	secretsAs extensions.SecretDelivery
	// also lists further powers that the check needs to observe the promise.
	also []extensions.Power
	// shares: the check minds nothing that another has left in the sandbox that ready gives it, and leaves it usable or
	// ended. Those of a group take turns with one sandbox.
	shares bool
	// reaps limits the check to extensions that end what is idle.
	reaps bool
	// hook names the hook the check needs, and reports whether it is set.
	hook func(Harness) (name string, ok bool)
	run  func(*env)
	// family numbers the check's list: those checks run together when a broken extension proves one of them.
	family int
}

func checks() []check {
	var all []check
	for family, list := range [][]check{describeChecks, declareChecks, placeChecks, coreChecks,
		egressChecks, entrypointChecks, listChecks, statusChecks, teardownChecks, handleChecks, errorChecks, cancelChecks,
		secretChecks, execChecks, execProcessChecks, insideChecks, logChecks, fileChecks, portChecks, urlChecks,
		snapshotChecks, readSnapshotChecks, forkChecks, pauseChecks, idleChecks,
		extendChecks, usageChecks, capacityChecks, probeChecks, estimateChecks, imageChecks, generationChecks, declaredChecks} {
		for _, c := range list {
			c.family = family
			all = append(all, c)
		}
	}
	return all
}

// Group is the checks of one part of the contract, such as "core".
type Group struct {
	Name   string
	Checks []Check

	h      Harness
	common *common
}

// Check is one promise of the contract that an extension makes.
type Check struct {
	// Name is the promise, without the group.
	Name string
	// Shares: the check uses the group's sandbox. Such checks of a group must not run side by side.
	Shares bool
	// Run checks the promise, at a place of its own unless it shares. t fails, or is skipped with the reason.
	Run func(t TB)
}

// Begin opens the place of the checks that share. It and the sandbox there last until t ends. Without Begin, each of
// these checks has a place of its own, too.
func (g Group) Begin(t TB) {
	t.Helper()
	if !slices.ContainsFunc(g.Checks, func(c Check) bool { return c.Shares }) {
		return
	}
	e := newEnv(t, g.h)
	e.open()
	g.common.e = e
}

// common is what the checks of a group that share use one after the other.
type common struct {
	e     *env // whose TB is the group's; nil before Begin
	spec  extensions.Spec
	h     extensions.Handle // zero before the first check
	reach extensions.Reachability
	took  time.Duration     // the create of h
	over  extensions.Handle // of a sandbox that was torn down; zero before a check asked for one
}

// ready returns the sandbox for a check, and another one if an earlier check has ended or stopped it.
func (c *common) ready(e *env) (extensions.Spec, extensions.Handle, extensions.Reachability) {
	e.Helper()
	if c.h.IsZero() || e.observe(c.h).Phase != extensions.PhaseReady {
		c.h = extensions.Handle{}
		began := time.Now()
		c.spec = c.e.spec()
		h, o, err := e.b.Provision(e.ctx(), c.spec)
		c.e.cleanUp(h)
		if err != nil {
			e.Fatalf("provision: %v", err)
		}
		c.reach = e.waited(c.spec, h, o)
		c.h, c.took = h, time.Since(began)
	}
	e.creating = c.took
	return c.spec, c.h, c.reach
}

// gone returns the handle of a sandbox that was torn down: the group's, which is replaced for a check that needs it.
func (c *common) gone(e *env) extensions.Handle {
	e.Helper()
	if c.over.IsZero() {
		if c.h.IsZero() {
			c.ready(e)
		}
		e.teardown(c.h)
		c.over, c.h = c.h, extensions.Handle{}
	}
	return c.over
}

// Groups returns every check that applies to the extension, in the suite's order.
func Groups(t TB, h Harness) []Group {
	t.Helper()
	desc := declared(t, h.New(t), func() extensions.Config { return h.Config(t) })
	var groups []Group
	at := map[string]int{}
	for _, c := range checks() {
		if !c.applies(desc) {
			continue
		}
		group, name, _ := strings.Cut(c.name, "/")
		if _, known := at[group]; !known {
			at[group], groups = len(groups), append(groups, Group{Name: group, h: h, common: &common{}})
		}
		g := &groups[at[group]]
		in := g.common
		g.Checks = append(g.Checks, Check{Name: name, Shares: c.shares, Run: func(t TB) { c.start(t, h, in) }})
	}
	return groups
}

// declared returns what x declares for the binding of a place; only an extension that tells bindings apart
// needs the place for that. A declaration that is wrong leaves the descriptor: checks of its own find it.
func declared(t TB, x extensions.Extension, place func() extensions.Config) extensions.Descriptor {
	t.Helper()
	if _, ok := x.(extensions.Declarer); !ok {
		return x.Describe()
	}
	d, err := extensions.Declared(x, place().Values)
	if err != nil {
		return x.Describe()
	}
	return d
}

func (c check) applies(d extensions.Descriptor) bool {
	if c.power != "" && !d.Has(c.power) {
		return false
	}
	if c.secretsAs != "" && !slices.Contains(d.Capabilities.SecretsAs, c.secretsAs) {
		return false
	}
	if c.reaps && d.Capabilities.IdleReap == extensions.IdleReapNone {
		return false
	}
	for _, p := range c.also {
		if !d.Has(p) {
			return false
		}
	}
	return true
}

// start runs the check, or says why it cannot.
func (c check) start(t TB, h Harness, in *common) {
	t.Helper()
	if reason, ok := h.Excuse[c.name]; ok {
		t.Skip(reason)
	}
	if c.hook != nil {
		if name, ok := c.hook(h); !ok {
			(&env{TB: t}).skipWithout(name)
		}
	}
	if c.shares && in.e != nil {
		e := *in.e
		e.TB, e.began, e.common = t, time.Now(), in
		c.run(&e)
		return
	}
	e := newEnv(t, h)
	if c.atOpenPlace() {
		e.open()
	}
	c.run(e)
}

// newEnv returns what a check works with, at a new place.
func newEnv(t TB, h Harness) *env {
	t.Helper()
	ext, cfg := h.New(t), h.Config(t)
	return &env{TB: t, h: h, ext: ext, desc: declared(t, ext, func() extensions.Config { return cfg }), cfg: cfg, began: time.Now()}
}

func (c check) atOpenPlace() bool {
	group, _, _ := strings.Cut(c.name, "/")
	return group != "describe" && group != "declare" && c.name != "core/open-makes-nothing" && c.name != "errors/unauthorized"
}
