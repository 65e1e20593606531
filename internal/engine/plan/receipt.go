package plan

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ReceiptVersion is the version that this release writes.
const ReceiptVersion = 1

// Receipt is durable, free of secrets, and enough to find, read, destroy and settle a sandbox without the
// ledger that made it. Its JSON form is versioned.
type Receipt struct {
	Version    int
	ID         extensions.ID
	Account    string
	Name       string
	Extension  string // binding; "" until a place is chosen
	Host       string
	Identity   string // digest of who the credential that made it is to its vendor; "" = none, or nobody knows
	Handle     string
	Generation int64
	CreatedAt  time.Time
	ExpiresAt  time.Time
	StartedAt  time.Time // start according to the provider, where billing begins
	Prices     string    // meter.PriceSnapshot.Line
	Ledger     string    // the ledger's own id
	Head       string    // its chain head when the receipt was written
	Lease      string    // on a sandbox that several hold; "" = it is held by none, or by one alone
	Mirror     string    // local folder that a mirrored workspace returns to
	// PreRelease are the toolchain's commands before an end.
	PreRelease []extensions.Step
	// EnvInside are variables that commands expand, as in extensions.Toolchain; EnvService is the one
	// service that gets them, "" = each.
	EnvInside  map[string]string
	EnvService string
}

// keptReceipt is the JSON form of a receipt. Every state holds one per sandbox, encoded twice, so it has
// short keys, times in microseconds since 1970 as in the ledger, and no repetition: the ledger is left out
// if the head names it.
type keptReceipt struct {
	Version    int               `json:"v"`
	ID         extensions.ID     `json:"id,omitempty"`
	Account    string            `json:"account,omitempty"`
	Name       string            `json:"name,omitempty"`
	Extension  string            `json:"extension,omitempty"`
	Host       string            `json:"host,omitempty"`
	Identity   string            `json:"identity,omitempty"`
	Handle     string            `json:"handle,omitempty"`
	Generation int64             `json:"gen"`
	Created    int64             `json:"created,omitempty"`
	Expires    int64             `json:"expires,omitempty"`
	Started    int64             `json:"started,omitempty"`
	Prices     string            `json:"prices,omitempty"`
	Ledger     string            `json:"ledger,omitempty"`
	Head       string            `json:"head,omitempty"`
	Lease      string            `json:"lease,omitempty"`
	Mirror     string            `json:"mirror,omitempty"`
	PreRelease []extensions.Step `json:"pre_release,omitempty"`
	EnvInside  map[string]string `json:"env_inside,omitempty"`
	EnvService string            `json:"env_service,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (r Receipt) MarshalJSON() ([]byte, error) {
	k := keptReceipt{Version: r.Version, ID: r.ID, Account: r.Account, Name: r.Name, Extension: r.Extension, Host: r.Host,
		Identity: r.Identity, Handle: r.Handle, Generation: r.Generation, Created: micros(r.CreatedAt), Expires: micros(r.ExpiresAt),
		Started: micros(r.StartedAt), Prices: r.Prices, Ledger: r.Ledger, Head: r.Head, Lease: r.Lease, Mirror: r.Mirror,
		PreRelease: r.PreRelease, EnvInside: r.EnvInside, EnvService: r.EnvService}
	if k.Ledger == ledgerOf(r.Head) {
		k.Ledger = ""
	}
	return json.Marshal(k)
}

// UnmarshalJSON implements json.Unmarshaler. A newer version is KindInvalid.
func (r *Receipt) UnmarshalJSON(raw []byte) error {
	var k keptReceipt
	if err := json.Unmarshal(raw, &k); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "this is not a receipt: %w", err)
	}
	if k.Version > ReceiptVersion {
		return extensions.Invalid("this receipt has version %d; this release reads at most version %d",
			"use the release that wrote it, or a newer one", k.Version, ReceiptVersion)
	}
	*r = Receipt{Version: k.Version, ID: k.ID, Account: k.Account, Name: k.Name, Extension: k.Extension, Host: k.Host,
		Identity: k.Identity, Handle: k.Handle, Generation: k.Generation, CreatedAt: fromMicros(k.Created), ExpiresAt: fromMicros(k.Expires),
		StartedAt: fromMicros(k.Started), Prices: k.Prices,
		Ledger: k.Ledger, Head: k.Head, Lease: k.Lease, Mirror: k.Mirror, PreRelease: k.PreRelease,
		EnvInside: k.EnvInside, EnvService: k.EnvService}
	if r.Ledger == "" {
		r.Ledger = ledgerOf(r.Head)
	}
	return nil
}

// ledgerOf returns the ledger that a head names; "" for none.
func ledgerOf(head string) string {
	if id, rest, ok := strings.Cut(head, ":"); ok && strings.Count(rest, ":") == 2 {
		return id
	}
	return ""
}

// micros returns t in microseconds, 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
