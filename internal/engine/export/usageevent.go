package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// UsageType is the CloudEvents type of a usage event: one charge in the form that meters read, with each
// value under a one-step JSONPath.
const UsageType = "sandboxer.usage"

type usageEvent struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"` // the account
	Time            string    `json:"time"`    // the end of the use
	DataContentType string    `json:"datacontenttype"`
	Stream          string    `json:"stream"`
	Sequence        string    `json:"sequence"`
	ChainHash       string    `json:"chainhash"`
	Data            usageData `json:"data"`
}

// usageData has decimals as strings, since JSON numbers may lose digits and receivers count in decimals.
// Unknown values are null.
type usageData struct {
	Account   string `json:"account"`
	SandboxID string `json:"sandbox_id"`
	Name      string `json:"name"`
	MeterID   string `json:"meter_id"`
	Segment   int64  `json:"segment"`
	Component string `json:"component"`
	Mode      string `json:"mode,omitempty"`

	Quantity  string  `json:"quantity"`
	Unit      string  `json:"unit"`
	UnitPrice *string `json:"unit_price"`
	PriceUnit string  `json:"price_unit"`
	Amount    *string `json:"amount"` // the cost, whoever pays
	Billed    *string `json:"billed"` // the part of it that the platform bills
	Currency  *string `json:"currency"`
	PaidBy    string  `json:"paid_by"`

	Confidence string `json:"confidence"`
	StartedAt  string `json:"started_at"`
	EndedAt    string `json:"ended_at"`
	// EndEstimated says that the end of its sandbox is an estimate.
	EndEstimated bool   `json:"end_estimated"`
	Profile      string `json:"profile"`
	Extension    string `json:"extension"`
	Host         string `json:"host,omitempty"`
	Actor        string `json:"actor,omitempty"`
	Harness      string `json:"harness,omitempty"`
	RunID        string `json:"run_id,omitempty"`
}

// usageEvents makes one event of each charge that e settled; none from other events. They depend only on
// the ledger: the same each time, under the same ids.
func usageEvents(ctx context.Context, l Ledger, e ledger.Event) ([][]byte, error) {
	var body struct {
		Source, Sequence string
		Data             struct {
			Meter *struct{ Charged string }
		}
	}
	if err := json.Unmarshal(e.CloudEvent, &body); err != nil {
		return nil, extensions.Errorf(extensions.KindInternal, "event %s/%d cannot be read: %w", e.Stream, e.Seq, err)
	}
	if body.Data.Meter == nil || body.Data.Meter.Charged == "" {
		return nil, nil
	}
	var out [][]byte
	f := ledger.UsageFilter{SandboxID: extensions.ID(e.Subject)}
	if extensions.ValidSnapshotID(e.Subject) {
		f = ledger.UsageFilter{SnapshotID: e.Subject}
	}
	err := l.EachCharge(ctx, f, func(c ledger.ChargeRow) error {
		if c.MeterID != body.Data.Meter.Charged {
			return nil
		}
		raw, err := encode(usageEvent{
			SpecVersion: "1.0", ID: usageID(e.ID, c.Charge), Source: body.Source, Type: UsageType, Subject: c.For.Account, Time: instant(c.EndedAt),
			DataContentType: "application/json", Stream: e.Stream, Sequence: body.Sequence, ChainHash: e.ID, Data: usageDataOf(c),
		})
		out = append(out, raw)
		return err
	})
	return out, err
}

// usageID is SHA-256 over the id of the event that settled the charge, and the charge's segment and
// component.
func usageID(event string, c ledger.Charge) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", event, c.Segment, c.Component))
	return hex.EncodeToString(sum[:])
}

func usageDataOf(c ledger.ChargeRow) usageData {
	m := measureOf(c.Unit)
	return usageData{
		Account: c.For.Account, SandboxID: string(c.SandboxID), Name: c.For.Name, MeterID: c.MeterID, Segment: c.Segment, Component: c.Component,
		Mode:     string(c.Mode),
		Quantity: counted(c.Charge), Unit: m.counted, UnitPrice: told(unitPriceOf(c.Charge)), PriceUnit: m.priced,
		Amount: told(amountOf(c.Charge)), Billed: told(billedIn(c.Charge)), Currency: told(c.Currency), PaidBy: paidBy(c.Charge),
		Confidence: c.Confidence, StartedAt: instant(c.StartedAt), EndedAt: instant(c.EndedAt), EndEstimated: c.EndEstimated,
		Profile: c.For.Profile, Extension: c.For.Extension, Host: c.For.Host, Actor: c.For.Actor, Harness: c.For.Harness, RunID: c.For.RunID,
	}
}

// told returns nil for "", an unknown value.
func told(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func instant(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// encode returns JSON without HTML escapes and without a final line break.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
