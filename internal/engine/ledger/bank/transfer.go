package bank

import "time"

// Transfer is one immutable movement between two accounts. Amount is in nano-units and not negative.
type Transfer struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`
	PendingID string    `json:"pending_id,omitempty"` // what it resolves
	Debit     string    `json:"debit"`
	Credit    string    `json:"credit"`
	Amount    int64     `json:"amount"`
	Subject   string    `json:"subject"`
	Budgets   []string  `json:"budgets,omitempty"`
	At        time.Time `json:"-"`
}

// Kinds of transfers. Stored: append only.
const (
	TransferDirect  = "direct"
	TransferPending = "pending"
	TransferPost    = "post" // resolves a pending one with the amount used
	TransferVoid    = "void" // resolves a pending one with nothing
)
