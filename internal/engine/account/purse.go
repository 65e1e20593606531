package account

import (
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
)

// Purse is an exact limit on the total cost of several sandboxes, in one currency. It sets aside each one's
// maximum cost before the create, so no order of calls exceeds the limit. It is safe for concurrent use.
type Purse struct {
	mu    sync.Mutex
	limit meter.Money
	taken meter.Amount // set aside, or spent
}

// Share is what a Purse sets aside for one sandbox.
type Share struct {
	purse  *Purse
	amount meter.Amount
	ended  bool
}

// NewPurse returns a purse with limit, which meter.ParseMoney reads.
func NewPurse(limit string) (*Purse, error) {
	m, err := meter.ParseMoney(limit)
	if err != nil {
		return nil, err
	}
	return &Purse{limit: m}, nil
}

// Left is what is neither set aside nor spent; never negative.
func (p *Purse) Left() meter.Money {
	p.mu.Lock()
	defer p.mu.Unlock()
	return meter.Money{Amount: p.left(), Currency: p.limit.Currency}
}

func (p *Purse) left() meter.Amount { return max(0, p.limit.Amount-p.taken) }

// Hold sets worst aside, a decimal in currency. It sets aside the whole rest if that is less, or if worst is
// unknown ("") or in another currency. A create with Share.Limit as its maximum is then refused, with the
// reason.
func (p *Purse) Hold(worst, currency string) *Share {
	p.mu.Lock()
	defer p.mu.Unlock()
	amount := p.left()
	if a, err := meter.ParseAmount(worst); err == nil && meter.Currency(currency) == p.limit.Currency {
		amount = min(amount, max(0, a))
	}
	p.taken += amount
	return &Share{purse: p, amount: amount}
}

// Limit is the most that the sandbox may cost.
func (s *Share) Limit() meter.Money {
	return meter.Money{Amount: s.amount, Currency: s.purse.limit.Currency}
}

// Spend replaces the amount set aside by the sandbox's actual costs, decimals each in its currency. An unknown
// amount, or one in another currency, counts as the whole amount set aside. Later calls change nothing.
func (s *Share) Spend(amounts [][2]string) {
	s.purse.mu.Lock()
	defer s.purse.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	var sum meter.Amount
	for _, line := range amounts {
		a, err := meter.ParseAmount(line[0])
		if err == nil && meter.Currency(line[1]) != s.purse.limit.Currency && a != 0 {
			return
		}
		if err == nil {
			sum, err = sum.Add(a)
		}
		if err != nil {
			return
		}
	}
	s.purse.taken += sum - s.amount
	s.amount = sum
}
