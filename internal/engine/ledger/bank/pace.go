package bank

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Pace is what counts against a ceiling at a moment.
type Pace struct {
	Ceiling
	Count int64 // counted so far: sandboxes, or nano-units
	Need  int64 // nano-units to add; 0 for sandboxes
	// Beside is counted for other planned sandboxes. They are not recorded, so a ledger leaves it 0.
	Beside int64
	// Next is when there will be room if nothing else begins. Zero if there is room now, or if room needs a
	// live sandbox to end or a higher ceiling.
	Next time.Time
	At   time.Time // when it was counted
}

// Fits reports whether there is room for one more sandbox, or for Need.
func (p Pace) Fits() bool {
	if p.Currency == "" {
		return add(p.Count, p.Beside) < p.Max
	}
	return p.Need <= 0 || add(p.Count, p.Beside) <= p.Max-p.Need
}

// Adds returns how much one more sandbox adds to the count: 1, or its need.
func (p Pace) Adds() int64 {
	if p.Currency == "" {
		return 1
	}
	return max(0, p.Need)
}

// Since returns the start of the window that counts at now.
func (c Ceiling) Since(now time.Time) time.Time { return now.Add(-c.Per) }

// Begun returns the pace of a ceiling on sandboxes. began holds when those in the window began, newest
// first. There is no room if the last Max of them are all in the window.
func (c Ceiling) Begun(now time.Time, began []time.Time) Pace {
	p := Pace{Ceiling: c, At: now, Count: int64(len(began))}
	if !p.Fits() && p.Max > 0 {
		p.Next = began[p.Max-1].Add(p.Per)
	}
	return p
}

// SetAside is what is held for a sandbox, in nano-units.
type SetAside struct {
	For    extensions.ID
	Amount int64
}

// Charged is an amount, in nano-units, of a meter that ended.
type Charged struct {
	At     time.Time
	Amount int64
}

// Spent returns the pace of a ceiling on money, from what is held for live sandboxes and what meters that
// ended in the window were charged, oldest first. With total, need is what sandbox id needs in all,
// including what is already held for it.
func (c Ceiling) Spent(now time.Time, held []SetAside, ended []Charged, need int64, total bool, id extensions.ID) Pace {
	var sum, own int64
	for _, h := range held {
		sum = add(sum, h.Amount)
		if h.For == id {
			own = add(own, h.Amount)
		}
	}
	p := Pace{Ceiling: c, Need: need, At: now, Count: sum}
	if total {
		p.Need = max(0, need-own)
	}
	for _, m := range ended {
		p.Count = add(p.Count, m.Amount)
	}
	if p.Fits() {
		return p
	}
	left := p // as it will be once one of them has left the window
	left.Count = sum
	for i := len(ended) - 1; i >= 0 && left.Fits(); i-- {
		p.Next = ended[i].At.Add(p.Per)
		left.Count = add(left.Count, ended[i].Amount)
	}
	return p
}
