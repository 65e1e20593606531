package sqlstore

import (
	"encoding/json"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/chain"
)

// The fields of each stored type, in the order of the tables.

func sandboxRow(s *ledger.Sandbox) []field {
	return []field{
		text("id", &s.ID), text("account", &s.Account), text("name", &s.Name), claim("claim", &s.ClaimsName, &s.Name),
		text("state", &s.State), text("mode", &s.Mode), number("generation", &s.Generation), number("fence", &s.Fence),
		text("profile", &s.Profile), text("profile_version", &s.ProfileVersion), text("spec_hash", &s.SpecHash),
		document("request", &s.Request), document("spec", &s.Spec), document("route", &s.Route),
		text("quote_digest", &s.QuoteDigest), text("payer", &s.Payer),
		text("extension", &s.Extension), text("host", &s.Host), text("host_ref", &s.HostRef), text("identity", &s.Identity),
		object("handle", &s.Handle), object("reachability", &s.Reachability), document("workspace_base", &s.WorkspaceBase),
		micros("ttl", &s.TTL), micros("max_ttl", &s.MaxTTL),
		stamp("created_at", &s.CreatedAt), stamp("ready_at", &s.ReadyAt), stamp("expires_at", &s.ExpiresAt),
		stamp("claimed_until", &s.ClaimedUntil),
		stamp("seen_alive_at", &s.SeenAliveAt), stamp("ended_at", &s.EndedAt), stamp("updated_at", &s.UpdatedAt),
		text("reason", &s.Reason), text("end_reason", &s.EndReason), flag("end_estimated", &s.EndEstimated),
	}
}

func intentRow(i *ledger.Intent) []field {
	open := i.State == ledger.Dispatched
	return []field{
		text("op_key", &i.Key), text("kind", &i.Kind), text("subject", &i.Subject), text("account", &i.Account),
		text("state", &i.State), claim("open_key", &open, &i.Subject), text("holder", &i.Holder), number("fence", &i.Fence),
		number("generation", &i.Generation), document("detail", &i.Detail), text("reason", &i.Reason),
		stamp("started_at", &i.StartedAt), stamp("finished_at", &i.FinishedAt), flag("metered", &i.Metered),
	}
}

func snapshotRow(s *ledger.Snapshot) []field {
	return []field{
		text("id", &s.ID), text("account", &s.Account), text("name", &s.Name), text("sandbox_id", &s.SandboxID),
		text("state", &s.State), number("fence", &s.Fence),
		text("extension", &s.Extension), text("host", &s.Host), text("host_ref", &s.HostRef), text("identity", &s.Identity),
		object("handle", &s.Handle), text("kind", &s.Kind), number("size_bytes", &s.SizeBytes), text("digest", &s.Digest),
		text("arch", &s.Arch), text("payer", &s.Payer), document("request", &s.Request), text("reason", &s.Reason),
		stamp("created_at", &s.CreatedAt), micros("retention", &s.Retention), stamp("lapses_at", &s.LapsesAt),
		stamp("ended_at", &s.EndedAt), stamp("updated_at", &s.UpdatedAt),
	}
}

func hostRow(h *ledger.Host) []field {
	return []field{
		text("account", &h.Account), text("name", &h.Name), text("ref", &h.Ref), object("facts", &h.Facts),
		stamp("created_at", &h.CreatedAt), stamp("updated_at", &h.UpdatedAt),
	}
}

func factsRow(f *ledger.Facts) []field {
	return []field{
		text("account", &f.Account), text("extension", &f.Extension), text("host", &f.Host), text("host_ref", &f.HostRef),
		text("config", &f.Config), object("found", &f.Found), stamp("probed_at", &f.ProbedAt),
	}
}

func leaseRow(s *ledger.Lease) []field {
	return []field{
		text("sandbox_id", &s.SandboxID), text("id", &s.ID), document("request", &s.Request),
		stamp("created_at", &s.CreatedAt), stamp("expires_at", &s.ExpiresAt),
	}
}

func meterRow(m *bank.Meter) []field {
	open, subject := m.ClosedAt.IsZero(), m.Subject()
	return append([]field{
		text("id", &m.ID), text("sandbox_id", &m.SandboxID), text("snapshot_id", &m.SnapshotID), claim("open_key", &open, &subject),
		number("generation", &m.Generation), text("currency", &m.Currency), document("rates", &m.Rates),
		stamp("opened_at", &m.OpenedAt), stamp("closed_at", &m.ClosedAt),
		text("start_source", &m.StartSource), text("end_source", &m.EndSource), flag("end_estimated", &m.EndEstimated),
		text("account", &m.For.Account), text("name", &m.For.Name), text("profile", &m.For.Profile),
		text("profile_version", &m.For.ProfileVersion),
		text("extension", &m.For.Extension), text("host", &m.For.Host),
		text("actor", &m.For.Actor), text("harness", &m.For.Harness), text("run_id", &m.For.RunID),
		flag("mixed", &m.Used.Mixed),
	}, amounts(&m.Used)...)
}

func amounts(s *bank.Sums) []field {
	return []field{
		number("running_ms", &s.Running), number("paused_ms", &s.Paused),
		number("wallet", &s.Wallet), number("own_key", &s.OwnKey), number("own_place", &s.OwnPlace),
		number("unpriced", &s.Unpriced), number("wallet_unknown", &s.WalletUnknown), number("own_key_unknown", &s.OwnKeyUnknown),
		number("own_place_unknown", &s.OwnPlaceUnknown),
	}
}

func segmentRow(s *bank.Segment, meter *string) []field {
	return []field{
		text("meter_id", meter), number("seq", &s.Seq), text("mode", &s.Mode), object("sizes", &s.Sizes),
		stamp("started_at", &s.StartedAt), stamp("ended_at", &s.EndedAt),
	}
}

func chargeRow(c *bank.Charge) []field {
	return []field{
		text("meter_id", &c.MeterID), number("segment", &c.Segment), text("component", &c.Component),
		number("quantity", &c.Quantity), text("unit", &c.Unit), number("unit_price", &c.UnitPrice),
		number("amount", &c.Amount), text("currency", &c.Currency), text("memo", &c.Memo), text("confidence", &c.Confidence),
	}
}

func priceBookRow(p *ledger.PriceBook) []field {
	return []field{
		text("sha256", &p.SHA256), text("source", &p.Source), text("version", &p.Version), text("as_of", &p.AsOf),
		document("body", &p.Body),
	}
}

func quoteRow(q *ledger.Quote, prices *json.RawMessage) []field {
	return []field{text("digest", &q.Digest), document("body", &q.Body), document("prices", prices), stamp("created_at", &q.CreatedAt)}
}

func eventRow(e *chain.Event, operation *bool) []field {
	op := claim("operation", operation, &e.Operation)
	op.load = func(src any) error {
		e.Operation, *operation = src.(string)
		return nil
	}
	return []field{
		text("stream", &e.Stream), number("seq", &e.Seq), text("hash", &e.ID), text("prev_hash", &e.PrevHash),
		text("type", &e.Type), text("subject", &e.Subject), op, stamp("time", &e.Time), document("body", &e.CloudEvent),
	}
}

func transferRow(x *bank.Transfer) []field {
	return []field{
		text("id", &x.ID), text("kind", &x.Kind), optional("pending_id", &x.PendingID), text("debit", &x.Debit), text("credit", &x.Credit),
		number("amount", &x.Amount), text("subject", &x.Subject), budgetIDs(&x.Budgets), stamp("created_at", &x.At),
	}
}

// optional stores empty text as NULL.
func optional(name string, p *string) field {
	return field{name: name,
		value: func() (any, error) {
			if *p == "" {
				return nil, nil
			}
			return *p, nil
		},
		load: func(src any) error {
			*p, _ = src.(string)
			return nil
		}}
}

func budgetIDs(ids *[]string) field {
	f := text("budgets", new(string))
	f.value = func() (any, error) {
		b, err := json.Marshal(append([]string{}, *ids...))
		return string(b), err
	}
	f.load = func(src any) error {
		s, ok := src.(string)
		if !ok {
			return fmt.Errorf("%T is not text", src)
		}
		*ids = nil
		var list []string
		err := json.Unmarshal([]byte(s), &list)
		if len(list) > 0 {
			*ids = list
		}
		return err
	}
	return f
}

func balanceRow(b *bank.Balance) []field {
	return []field{
		text("id", &b.ID), text("org", &b.Org), text("kind", &b.Kind), text("currency", &b.Currency),
		number("debits_pending", &b.DebitsPending), number("credits_pending", &b.CreditsPending),
		number("debits_posted", &b.DebitsPosted), number("credits_posted", &b.CreditsPosted),
	}
}

func budgetRow(b *bank.Budget) []field {
	org := ledger.StreamOf(b.Account)
	return []field{
		text("id", &b.ID), text("org", &org), text("account", &b.Account), text("name", &b.Name), text("currency", &b.Currency),
		number("ceiling", &b.Limit), flag("hard", &b.Hard), text("period", &b.Period), stamp("since", &b.Since),
		number("reserved", &b.Reserved), number("spent", &b.Spent), number("over", &b.Over),
	}
}
