package exttest

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// NoSkipEnv, set to 1, turns a skip for want of a hook into a failure.
const NoSkipEnv = "SANDBOXER_NO_SKIP"

// check is one promise of the contract.
type check struct {
	// name is "group/promise"; it is stable.
	name string
	// power limits the check to extensions that declare it; "" = all.
	power extensions.Power
	// secretsAs limits the check to extensions that deliver secrets so; "" = all.
	secretsAs extensions.SecretDelivery
	// also lists further powers without which the promise cannot be seen.
	also []extensions.Power
	// hook names the hook the check needs, and reports whether it is there.
	hook func(Harness) (name string, ok bool)
	run  func(*env)
	// family numbers the list the check is in: those are looked at together
	// when one of them is proved by a broken extension.
	family int
}

func checks() []check {
	var all []check
	for family, list := range [][]check{describeChecks, coreChecks, statusChecks, teardownChecks, handleChecks, errorChecks, cancelChecks,
		secretChecks, execChecks, execProcessChecks, insideChecks, logChecks, fileChecks, portChecks, snapshotChecks, forkChecks, pauseChecks,
		extendChecks, usageChecks, capacityChecks, probeChecks, estimateChecks, imageChecks, generationChecks, declaredChecks} {
		for _, c := range list {
			c.family = family
			all = append(all, c)
		}
	}
	return all
}

// Names lists every check, those of powers included.
func Names() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// Run runs every check that applies to the extension as a subtest of its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	desc := h.New(t).Describe()
	byGroup := map[string][]check{}
	var order []string
	for _, c := range checks() {
		if !c.applies(desc) {
			continue
		}
		group, _, _ := strings.Cut(c.name, "/")
		if byGroup[group] == nil {
			order = append(order, group)
		}
		byGroup[group] = append(byGroup[group], c)
	}
	for _, group := range order {
		t.Run(group, func(t *testing.T) {
			if !h.Serial {
				t.Parallel()
			}
			for _, c := range byGroup[group] {
				t.Run(strings.TrimPrefix(c.name, group+"/"), func(t *testing.T) {
					if !h.Serial {
						t.Parallel()
					}
					c.start(t, h)
				})
			}
		})
	}
}

func (c check) applies(d extensions.Descriptor) bool {
	if c.power != "" && !d.Has(c.power) {
		return false
	}
	if c.secretsAs != "" && !slices.Contains(d.Capabilities.SecretsAs, c.secretsAs) {
		return false
	}
	for _, p := range c.also {
		if !d.Has(p) {
			return false
		}
	}
	return true
}

// start runs the check against a place of its own, or says why it cannot.
func (c check) start(t testing.TB, h Harness) {
	t.Helper()
	if reason, ok := h.Excuse[c.name]; ok {
		t.Skip(reason)
	}
	if c.hook != nil {
		if name, ok := c.hook(h); !ok {
			if os.Getenv(NoSkipEnv) == "1" {
				t.Fatalf("the harness has no %s, and skips are failures here", name)
			}
			t.Skipf("the harness has no %s", name)
		}
	}
	ext := h.New(t)
	e := &env{TB: t, h: h, ext: ext, desc: ext.Describe(), cfg: h.Config(t)}
	if strings.HasPrefix(c.name, "describe/") || c.name == "core/open-makes-nothing" || c.name == "errors/unauthorized" {
		c.run(e)
		return
	}
	e.open()
	c.run(e)
}
