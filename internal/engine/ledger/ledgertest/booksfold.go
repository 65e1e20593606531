package ledgertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
)

// journal is the money of an org by its events alone, read in order, with the invariants after each.
type journal struct {
	seq      int64
	prev     string
	accounts map[string]*ledger.Balance // by id; events have no org, kind or currency
	pending  map[string]ledger.Transfer
	resolved map[string]bool
	payers   map[string]string // by sandbox, of unsettled lives
}

func newJournal() *journal {
	return &journal{accounts: map[string]*ledger.Balance{}, pending: map[string]ledger.Transfer{}, resolved: map[string]bool{},
		payers: map[string]string{}}
}

type moneyFacts struct {
	Funds []ledger.Transfer `json:"funds"`
	Set   struct {
		Payer *string `json:"payer"`
	} `json:"set"`
	Meter *struct {
		Charges []struct {
			Amount   int64  `json:"amount_nano"`
			Currency string `json:"currency"`
			Memo     string `json:"memo"`
		} `json:"charges"`
	} `json:"meter"`
}

func (j *journal) of(id string) *ledger.Balance {
	if j.accounts[id] == nil {
		j.accounts[id] = &ledger.Balance{ID: id}
	}
	return j.accounts[id]
}

// read takes the next event and returns the violated invariant; "" = none.
func (j *journal) read(e ledger.Event) string {
	if e.Seq != j.seq+1 || e.PrevHash != j.prev {
		return fmt.Sprintf("event %d does not follow event %d", e.Seq, j.seq)
	}
	j.seq, j.prev = e.Seq, e.ID
	var body struct{ Data moneyFacts }
	if err := json.Unmarshal(e.CloudEvent, &body); err != nil {
		return err.Error()
	}
	for _, x := range body.Data.Funds {
		if wrong := j.move(x); wrong != "" {
			return fmt.Sprintf("event %d: transfer %s %s", e.Seq, x.ID, wrong)
		}
	}
	credit := j.payers[e.Subject] == ledger.AccountWallet
	if p := body.Data.Set.Payer; p != nil {
		j.payers[e.Subject] = *p
	}
	return j.prefix(e.Seq, body.Data, credit)
}

func (j *journal) move(x ledger.Transfer) string {
	from, to := j.of(x.Debit), j.of(x.Credit)
	switch {
	case x.Amount < 0 || x.Amount == 0 && x.Kind != bank.TransferVoid:
		return fmt.Sprintf("is of %d", x.Amount)
	case x.Kind == bank.TransferPending:
		j.pending[x.ID] = x
		from.DebitsPending += x.Amount
		to.CreditsPending += x.Amount
		return ""
	case x.PendingID != "":
		p, ok := j.pending[x.PendingID]
		if !ok || j.resolved[x.PendingID] {
			return "resolves what is not pending, or for the second time"
		}
		if x.Amount > p.Amount || x.Debit != p.Debit || x.Credit != p.Credit || x.Subject != p.Subject ||
			(x.Kind == bank.TransferVoid) != (x.Amount == 0) {
			return "is not of what it resolves"
		}
		j.resolved[x.PendingID] = true
		from.DebitsPending -= p.Amount
		to.CreditsPending -= p.Amount
	case x.Kind != bank.TransferDirect:
		return "is of an unknown kind " + x.Kind
	}
	from.DebitsPosted += x.Amount
	to.CreditsPosted += x.Amount
	return ""
}

// prefix checks the invariants after each event: debits equal credits, nothing is overdrawn, and usage equals what is
// posted and owed. credit says that platform credit paid for the life that the event ends.
func (j *journal) prefix(seq int64, m moneyFacts, credit bool) string {
	var sum ledger.Balance
	for _, b := range j.accounts {
		sum.DebitsPending += b.DebitsPending
		sum.CreditsPending += b.CreditsPending
		sum.DebitsPosted += b.DebitsPosted
		sum.CreditsPosted += b.CreditsPosted
		if strings.Contains(b.ID, ":"+ledger.AccountWallet+":") && b.Available() < 0 {
			return fmt.Sprintf("event %d overdraws %s: %+v", seq, b.ID, *b)
		}
	}
	if sum.DebitsPending != sum.CreditsPending || sum.DebitsPosted != sum.CreditsPosted {
		return fmt.Sprintf("after event %d debits are not credits: %+v", seq, sum)
	}
	if m.Meter == nil {
		return ""
	}
	return m.settled(seq, credit)
}

// settled requires that usage equals what is posted and owed, and that the part others pay equals the memos.
func (m moneyFacts) settled(seq int64, credit bool) string {
	type side struct {
		memo     bool
		currency string
	}
	paid, used := map[side]int64{}, map[side]int64{}
	for _, x := range m.Funds {
		parts := strings.Split(x.Debit, ":")
		kind, currency := parts[len(parts)-2], parts[len(parts)-1]
		wallet := kind == ledger.AccountWallet
		// a new reservation, or the payment of a debt
		if x.Kind == bank.TransferPending || strings.Contains(x.Credit, ":"+ledger.AccountReceivable+":") {
			continue
		}
		paid[side{!wallet && kind != ledger.AccountReceivable, currency}] += x.Amount
	}
	for _, c := range m.Meter.Charges {
		used[side{!credit || c.Memo != "", c.Currency}] += c.Amount
	}
	for s, n := range paid {
		if used[s] != n {
			return fmt.Sprintf("event %d: %d were used as %+v, and booked are %d", seq, used[s], s, n)
		}
	}
	for s, n := range used {
		if paid[s] != n {
			return fmt.Sprintf("event %d: %d were used as %+v, and booked are %d", seq, n, s, paid[s])
		}
	}
	return ""
}

// owesAndHas reports a debt beside free credit; "" = none.
func owesAndHas(balances []ledger.Balance) string {
	for _, owed := range balances {
		if owed.Kind != ledger.AccountReceivable || owed.Owed() == 0 {
			continue
		}
		for _, w := range balances {
			if owed.Owed() < 0 || w.Kind == ledger.AccountWallet && w.Org == owed.Org && w.Currency == owed.Currency && w.Available() > 0 {
				return fmt.Sprintf("%+v is owed while %+v is free", owed, w)
			}
		}
	}
	return ""
}
