package catalog

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
)

// Ceiling limits how fast an account makes sandboxes or spends.
type Ceiling struct {
	Policy string // "policy.acme"
	// Scope says whose sandboxes count: an org's, or one account's.
	Scope string
	// Currency says what Max counts: nano-units of it, or sandboxes if "".
	Currency string
	Max      int64
	Per      time.Duration
}

// maxPer is the longest window of a ceiling.
const maxPer = 31 * 24 * time.Hour

// ceilingsFile is the ceilings section of a policy.
type ceilingsFile struct {
	Creates *createsFile `yaml:"creates"`
	Spend   *spendFile   `yaml:"spend"`
}

type createsFile struct {
	Max *int64            `yaml:"max"`
	Per *profile.Duration `yaml:"per"`
}

type spendFile struct {
	Max *string           `yaml:"max"`
	Per *profile.Duration `yaml:"per"`
}

// Ceilings returns those of every policy for an account. Each applies by itself, so the lowest wins. A
// ceiling of a policy for all accounts counts each account separately.
func (c *Catalog) Ceilings(account string) []Ceiling {
	var out []Ceiling
	for _, p := range c.Policies {
		if !p.concerns(account) {
			continue
		}
		scope := p.Account
		if scope == everyAccount {
			scope = account
		}
		for _, x := range p.Ceilings {
			x.Policy, x.Scope = p.ID, scope
			out = append(out, x)
		}
	}
	return out
}

func (r *policyReader) ceilings() []Ceiling {
	in := r.in.Ceilings
	if in == nil {
		return nil
	}
	var out []Ceiling
	if c := in.Creates; c != nil {
		x := Ceiling{Per: r.per("creates", c.Per)}
		switch {
		case c.Max == nil:
			r.required("creates", "max: 60")
		case *c.Max < 0:
			r.errs = append(r.errs, r.pos.Errorf([]string{"ceilings", "creates", "max"}, "%d is negative", *c.Max))
		default:
			x.Max = *c.Max
		}
		out = append(out, x)
	}
	if s := in.Spend; s != nil {
		x := Ceiling{Per: r.per("spend", s.Per)}
		if s.Max == nil {
			r.required("spend", `max: "20 USD"`)
		} else {
			m, err := meter.ParseMoney(*s.Max)
			r.fail([]string{"ceilings", "spend", "max"}, err)
			x.Max, x.Currency = int64(m.Amount), string(m.Currency)
		}
		out = append(out, x)
	}
	return out
}

func (r *policyReader) required(key, example string) {
	r.errs = append(r.errs, r.pos.Errorf([]string{"ceilings", key}, "ceilings.%s needs max and per, as in { %s, per: 10m }", key, example))
}

func (r *policyReader) per(key string, d *profile.Duration) time.Duration {
	switch {
	case d == nil:
		r.required(key, map[string]string{"creates": "max: 60", "spend": `max: "20 USD"`}[key])
		return 0
	case *d <= 0 || time.Duration(*d) > maxPer:
		r.errs = append(r.errs, r.pos.Errorf([]string{"ceilings", key, "per"}, "%s is not positive and at most %s",
			profile.FormatDuration(time.Duration(*d)), profile.FormatDuration(maxPer)))
	}
	return time.Duration(*d)
}
