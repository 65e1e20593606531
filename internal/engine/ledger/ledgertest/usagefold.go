package ledgertest

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
)

// fold adds up these lives by plain arithmetic.
func fold(all []metered, f ledger.UsageFilter, by []ledger.Dimension) []ledger.UsageRow {
	sums := map[string]*ledger.UsageRow{}
	for _, m := range all {
		var minutes [2]int64
		for i, n := range m.minutes {
			minutes[i%2] += int64(n)
		}
		end := m.start.Add(time.Duration(minutes[0]+minutes[1]) * time.Minute)
		ofWorkspace := m.account == f.Account || strings.HasPrefix(m.account, f.Account+"/")
		if m.open || !ofWorkspace || end.Before(f.From) || !f.To.IsZero() && !end.Before(f.To) || f.Profile != "" && m.profile != f.Profile ||
			f.Host != "" && m.host != f.Host || f.Actor != "" && m.consumer[0] != f.Actor {
			continue
		}
		row := func(c ledger.Charge, currency string) *ledger.UsageRow {
			var r ledger.UsageRow
			for _, d := range by {
				switch d {
				case ledger.ByAccount:
					r.Account = m.account
				case ledger.ByProfile:
					r.Profile = m.profile
				case ledger.ByExtension:
					r.Extension = m.extension
				case ledger.ByHost:
					r.Host = m.host
				case ledger.ByActor:
					r.Actor = m.consumer[0]
				case ledger.ByHarness:
					r.Harness = m.consumer[1]
				case ledger.ByRunID:
					r.RunID = m.consumer[2]
				case ledger.BySandbox:
					r.SandboxID, r.Name = m.id, m.name
				case ledger.ByDay:
					r.Day = end.Truncate(24 * time.Hour)
				case ledger.ByComponent:
					r.Component, r.Unit = c.Component, c.Unit
				}
			}
			r.Currency = currency
			key := fmt.Sprintf("%+v", r)
			if sums[key] == nil {
				r.Quantity = new(big.Int)
				sums[key] = &r
			}
			return sums[key]
		}
		lived := func(r *ledger.UsageRow) {
			r.Meters++
			if m.estimated {
				r.Estimated++
			}
			r.Running += minutes[0] * 60_000
			r.Paused += minutes[1] * 60_000
		}
		asked := slices.DeleteFunc(slices.Clone(m.charges), func(c ledger.Charge) bool {
			return f.Component != "" && c.Component != f.Component && !strings.HasPrefix(c.Component, f.Component+":")
		})
		if byComponent := slices.Contains(by, ledger.ByComponent); byComponent {
			for _, c := range asked {
				r := row(c, c.Currency)
				lived(r)
				r.Quantity.Add(r.Quantity, big.NewInt(c.Quantity))
			}
		} else if f.Component == "" || len(asked) > 0 {
			lives := map[string]bool{}
			for _, c := range asked {
				lives[c.Currency] = f.Component != ""
			}
			lives[m.currency] = lives[m.currency] || f.Component == ""
			for currency, counts := range lives {
				if counts {
					lived(row(ledger.Charge{}, currency))
				}
			}
		}
		unpriced := map[*ledger.UsageRow]bool{}
		for _, c := range asked {
			r := row(c, c.Currency)
			if c.Confidence == "unknown" {
				if !unpriced[r] {
					unpriced[r] = true
					r.Unpriced++
				}
				switch {
				case c.Memo == "":
					r.WalletUnknown++
				case strings.HasPrefix(c.Memo, "byok_memo:"):
					r.OwnKeyUnknown++
				default:
					r.OwnPlaceUnknown++
				}
				continue
			}
			switch {
			case c.Memo == "":
				r.Wallet += c.Amount
			case strings.HasPrefix(c.Memo, "byok_memo:"):
				r.OwnKey += c.Amount
			default:
				r.OwnPlace += c.Amount
			}
		}
	}
	var out []ledger.UsageRow
	for _, r := range sums {
		out = append(out, *r)
	}
	return out
}
