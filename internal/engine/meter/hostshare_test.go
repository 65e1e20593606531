package meter

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func genHost(t *rapid.T, idle string) extensions.Host {
	perHour := Amount(rapid.Int64Range(0, 100e9).Draw(t, "per hour"))
	c := extensions.HostCost{PerHour: perHour.String() + " USD", CPU: rapid.Int64Range(1, 256).Draw(t, "cpu"), Idle: idle,
		MemoryMB: rapid.Int64Range(0, 4<<20).Draw(t, "memory"), DiskMB: rapid.Int64Range(0, 1<<26).Draw(t, "disk"),
		GPU: rapid.Int64Range(0, 8).Draw(t, "gpu")}
	return extensions.Host{Name: "one", Cost: &c}
}

func all(c extensions.HostCost) Sizes {
	return Sizes{VCPUMilli: c.CPU * 1000, MemoryMiB: c.MemoryMB, DiskMiB: c.DiskMB, GPUs: c.GPU}
}

// The only tenant of all of a host bears what the host costs, and each unit
// has the price that OpenCost's formula gives it.
func TestAWholeHostCostsWhatItsOwnerPays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := genHost(t, rapid.SampledFrom([]string{"", extensions.IdleNone, extensions.IdleShared, extensions.IdleDedicated}).Draw(t, "idle"))
		q, err := NewQuote(QuoteInput{PricingModel: extensions.PricingSelfHosted, Host: &h, Resources: asked(all(*h.Cost)), TTL: time.Hour})
		if err != nil || q.Max == nil {
			t.Fatalf("%v, not known: %v", err, q.Unknowns)
		}
		perHour, err := ParseMoney(h.Cost.PerHour)
		if err != nil {
			t.Fatal(err)
		}
		// Each unit price is off by at most half a pico-unit, each line by half a nano-unit.
		c := h.Cost
		slack := Amount(c.CPU+c.MemoryMB/1024+c.DiskMB/1024+c.GPU)/2000 + 3
		if d := *q.Max - perHour.Amount; d > slack || d < -slack {
			t.Fatalf("%+v: the whole host costs %s", *c, q.Max)
		}
		if c.Idle == extensions.IdleDedicated {
			return
		}
		weight := plus(plus(times(rat("0.031611"), big.NewRat(c.CPU, 1)), times(rat("0.004237"), big.NewRat(c.MemoryMB, 1024))),
			plus(times(rat("0.00005479452"), big.NewRat(c.DiskMB, 1024)), times(rat("0.95"), big.NewRat(c.GPU, 1))))
		for _, p := range q.Snapshot.Prices {
			ratio := map[string]string{"vcpu": "0.031611", "memory": "0.004237", "disk": "0.00005479452", "gpu": "0.95"}[p.Component]
			pico := nearest(per(times(times(rat(ratio), big.NewRat(int64(perHour.Amount), 1)), rat("1000")), weight))
			if pico.Cmp(big.NewInt(int64(*p.Price))) != 0 {
				t.Fatalf("%s costs %d pico-units, the formula says %s", p.Component, int64(*p.Price), pico)
			}
		}
	})
}

// What is borne and what is idle are the host's cost, to the nano-unit, and a
// quote is what is allocated to a sandbox of that size and time.
func TestAllocationsAndIdleAreTheHostsCost(t *testing.T) {
	t.Parallel()
	for _, idle := range []string{"", extensions.IdleNone, extensions.IdleShared, extensions.IdleDedicated} {
		t.Run("idle "+idle, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) { shareHost(t, idle) })
		})
	}
}

func shareHost(t *rapid.T, idle string) {
	h := genHost(t, idle)
	h.Cost.MemoryMB, h.Cost.DiskMB = max(h.Cost.MemoryMB, 1), max(h.Cost.DiskMB, 1)
	window := time.Duration(rapid.Int64Range(1, 31*24*3600*1000).Draw(t, "window")) * time.Millisecond
	var uses []HostUse
	for i := range rapid.IntRange(0, 5).Draw(t, "sandboxes") {
		s := Segment{Mode: rapid.SampledFrom([]Mode{ModeRunning, ModePaused}).Draw(t, "mode"),
			Milliseconds: rapid.Int64Range(0, window.Milliseconds()).Draw(t, "ms"), Sizes: Sizes{
				VCPUMilli: rapid.Int64Range(1, h.Cost.CPU*200).Draw(t, "cpu"),
				MemoryMiB: rapid.Int64Range(1, max(1, h.Cost.MemoryMB/5)).Draw(t, "memory"),
				DiskMiB:   rapid.Int64Range(1, max(1, h.Cost.DiskMB/5)).Draw(t, "disk")}}
		uses = append(uses, HostUse{ID: fmt.Sprint("s", i), Segments: []Segment{s}})
	}
	out, err := ShareHost(h, window, uses)
	if err != nil {
		t.Fatal(err)
	}
	perHour, _ := ParseMoney(h.Cost.PerHour)
	whole := nearest(per(times(big.NewRat(int64(perHour.Amount), 1), big.NewRat(window.Milliseconds(), 1)), rat("3600000")))
	if whole.Cmp(big.NewInt(int64(out.Cost))) != 0 {
		t.Fatalf("the window costs %s, not %s nano-units", out.Cost, whole)
	}
	sum, slack := out.Idle, Amount(3*len(uses)+3)
	for i, s := range out.Shares {
		sum += s.Borne
		if s.Borne < 0 || s.Allocated < 0 {
			t.Fatalf("below zero: %+v", s)
		}
		seg := uses[i].Segments[0]
		if idle != extensions.IdleShared && s.Borne != s.Allocated {
			t.Fatalf("bears %s of its %s", s.Borne, s.Allocated)
		}
		if seg.Milliseconds == 0 {
			continue
		}
		q, err := NewQuote(QuoteInput{PricingModel: extensions.PricingSelfHosted, Host: &h, Resources: asked(seg.Sizes),
			TTL: time.Duration(seg.Milliseconds) * time.Millisecond})
		if err != nil || q.Max == nil || *q.Max != s.Allocated {
			t.Fatalf("allocated %s, quoted %v, %v", s.Allocated, q.Max, err)
		}
		slack += Amount(seg.Sizes.VCPUMilli*seg.Milliseconds/3_600_000_000 +
			(seg.Sizes.MemoryMiB+seg.Sizes.DiskMiB)*seg.Milliseconds/3_686_400_000)
	}
	if sum != out.Cost {
		t.Fatalf("%s is borne or idle of %s", sum, out.Cost)
	}
	switch {
	case idle == extensions.IdleShared && out.Idle != 0 && sumOf(out.Shares) > 0:
		t.Fatalf("%s is idle, and all of it is shared", out.Idle)
	case idle != extensions.IdleDedicated && idle != extensions.IdleShared && out.Idle < -slack: // five of at most a fifth each
		t.Fatalf("%s is idle", out.Idle)
	}
}

func sumOf(shares []HostShare) (sum Amount) {
	for _, s := range shares {
		sum += s.Allocated
	}
	return sum
}

func TestSharedIdleGoesByWhatEachIsAllocated(t *testing.T) {
	t.Parallel()
	h := extensions.Host{Name: "one", Cost: &extensions.HostCost{PerHour: "0.40 USD", CPU: 4, Idle: extensions.IdleShared}}
	hour := func(cpu int64) []Segment {
		return []Segment{{Mode: ModeRunning, Milliseconds: 3_600_000, Sizes: Sizes{VCPUMilli: cpu}}}
	}
	out, err := ShareHost(h, time.Hour, []HostUse{{"a", hour(1000)}, {"b", hour(2000)}})
	if err != nil || len(out.Shares) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	if a, b := out.Shares[0], out.Shares[1]; a.Allocated.String() != "0.10" || b.Allocated.String() != "0.20" ||
		a.Borne.String() != "0.133333333" || b.Borne.String() != "0.266666667" || out.Idle != 0 {
		t.Errorf("%+v", out)
	}
	h.Cost.Idle = extensions.IdleNone
	if out, err := ShareHost(h, time.Hour, []HostUse{{"a", hour(1000)}}); err != nil || out.Idle.String() != "0.30" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestAHostThatCannotBeSharedIsRefused(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]*extensions.HostCost{
		"has no cost":         nil,
		"unknown":             {PerHour: "1 USD", CPU: 1, Idle: "split"},
		"negative":            {PerHour: "1 USD", GPU: -1},
		"is unknown":          {PerHour: "1 USD"},
		"decimal number":      {PerHour: "x USD", CPU: 1},
		"result is too large": {PerHour: "9000000000 USD", CPU: 1},
	} {
		uses := []HostUse{{"a", []Segment{{Mode: ModeRunning, Milliseconds: 1, Sizes: Sizes{VCPUMilli: 1}}}}}
		out, err := ShareHost(extensions.Host{Name: "one", Cost: c}, time.Hour, uses)
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v", says, out, err)
		}
	}
}
