package bank

import (
	"fmt"
	"math"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// reserve sets funds aside and decides who pays for the life, or refuses with the limit that allows the
// least. life is the payer so far, "" if undecided.
func (b *Books) reserve(key, life string, r Reserve) (payer string, err error) {
	if err := r.validate(); err != nil {
		return life, err
	}
	if r.Unknown && !r.Less {
		if err := r.unpriced(limits(b.budgets)); err != nil {
			return life, err
		}
	}
	wallet := b.balance(AccountWallet, r.Currency)
	payer = r.payer(life, b.held, wallet)
	parts, rest := r.portions(payer, b.held, wallet)
	if err := b.release(key, rest); err != nil || r.Less {
		return life, err
	}
	return payer, b.setAside(key, r, parts)
}

// setAside reserves what the portions lack.
func (b *Books) setAside(key string, r Reserve, parts []portion) error {
	sum := int64(0)
	for _, p := range parts {
		sum += p.missing()
	}
	if sum == 0 {
		return nil
	}
	bounds := b.of(r.Currency)
	if err := r.refusal(parts, b.balance(AccountWallet, r.Currency), limits(bounds)); err != nil {
		return err
	}
	var ids []string
	for _, c := range bounds {
		if c.Reserved > math.MaxInt64-sum {
			return fault.Errorf(extensions.KindInvalid, "the budget %s cannot hold so much", c.ID)
		}
		c.Reserved += sum
		c.changed = true
		ids = append(ids, c.ID)
	}
	id := key + "/reserve"
	for _, p := range parts {
		if p.missing() == 0 {
			continue
		}
		x := Transfer{ID: id, Kind: TransferPending, Amount: p.missing(), Subject: b.subject, Budgets: ids}
		x.Debit, x.Credit = b.sides(p.payer, r.Currency)
		if err := b.move(x, 0); err != nil {
			return err
		}
		id = key + "/reserve/own"
	}
	return nil
}

// release voids surplus reservations and sets aside again the part still needed. The same budgets held
// more before, so none refuses.
func (b *Books) release(key string, rest []surplus) error {
	for i, p := range rest {
		x := Transfer{ID: fmt.Sprintf("%s/release/%d", key, i), Kind: TransferVoid, PendingID: p.ID, Debit: p.Debit, Credit: p.Credit,
			Subject: p.Subject, Budgets: p.Budgets}
		if err := b.move(x, p.Amount); err != nil {
			return err
		}
		if p.keep > 0 {
			x.ID, x.Kind, x.PendingID, x.Amount = fmt.Sprintf("%s/keep/%d", key, i), TransferPending, "", p.keep
			x.At = p.At // that part is held since then
			if err := b.move(x, 0); err != nil {
				return err
			}
		}
		freed := p.Transfer
		freed.Amount -= p.keep
		b.spend(freed, 0, 0)
	}
	return nil
}
