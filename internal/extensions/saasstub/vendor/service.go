package vendor

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"time"
)

// Regions are the service's only regions.
var Regions = []string{"eu", "us"}

// The largest object the service rents.
const (
	MaxMilliCPU = 8000
	MaxMemoryMB = 16384
	MaxTTL      = 24 * time.Hour
	TrialTTL    = time.Hour
)

// Request asks for one object.
type Request struct {
	Name     string // unique among the account's live objects
	Title    string
	Labels   map[string]string
	Region   string // "" = the first
	MilliCPU int64  // 0 = 1000
	MemoryMB int64  // 0 = 512
	ReadOnly bool
	NoAccess bool
	Open     bool          // the network
	Allow    []Destination // where it is not open
	Public   bool          // anybody may reach its ports
	Entry    []string      // what runs by itself; nil = nothing
	Deadline time.Time
	Idle     time.Duration // how long it may be idle; 0 = as long as it lives
}

// Create names, labels and bills an object; Start makes it usable. A taken name is CodeNameTaken with the
// reference of the object that has it.
func (c *Client) Create(ctx context.Context, req Request) (obj Object, err error) {
	err = c.call(ctx, OpCreate, target{name: req.Name}, func(st *state, r Rule) (*Object, error) {
		now := st.now()
		if err := c.v.sweep(st); err != nil {
			return nil, err
		}
		if o := st.byName(req.Name); o != nil {
			return nil, &Fault{Code: CodeNameTaken, Message: "the name " + req.Name + " is taken", Ref: o.Ref}
		}
		if err := c.acceptable(st, req, now); err != nil {
			return nil, err
		}
		o := &Object{Ref: newRef("vm"), Name: req.Name, Title: req.Title, Account: c.account, Labels: req.Labels,
			Region: req.Region, MilliCPU: req.MilliCPU, MemoryMB: req.MemoryMB,
			ReadOnly: req.ReadOnly, NoAccess: req.NoAccess, Open: req.Open, Allow: req.Allow, Public: req.Public, Entry: req.Entry,
			State: StateCreated, CreatedAt: now, BilledAt: now,
			VisibleAt: now.Add(c.lag), Deadline: req.Deadline.UTC(), IdleAfter: Duration(req.Idle)}
		if o.Region == "" {
			o.Region = Regions[0]
		}
		if o.MilliCPU == 0 {
			o.MilliCPU = 1000
		}
		if o.MemoryMB == 0 {
			o.MemoryMB = 512
		}
		if r.Do == DoGrow {
			o.MilliCPU, o.MemoryMB = 2*o.MilliCPU, 2*o.MemoryMB
		}
		st.Objects[o.Ref] = o
		obj = o.clone()
		return o, nil
	})
	return obj, err
}

func (c *Client) acceptable(st *state, req Request, now time.Time) error {
	switch {
	case req.Region != "" && !slices.Contains(Regions, req.Region):
		return fault(CodeInvalid, "there is no region "+req.Region)
	case req.MilliCPU < 0 || req.MilliCPU > MaxMilliCPU, req.MemoryMB < 0 || req.MemoryMB > MaxMemoryMB:
		return fault(CodeInvalid, "no machine of that size is for rent")
	case !req.Deadline.After(now):
		return fault(CodeInvalid, "the deadline has passed already")
	case req.Deadline.Sub(now) > c.longest()+time.Minute: // a minute for differing clocks
		return fault(CodeInvalid, "the deadline is further away than "+c.longest().String())
	}
	if used, limit := c.quota(st); used >= limit {
		return actionFaults[DoQuota]
	}
	return checkLabels(req.Labels)
}

func (c *Client) quota(st *state) (used, limit int64) {
	limit = DefaultQuota
	if st.script.Quota != nil {
		limit = *st.script.Quota
	}
	for _, o := range st.Objects {
		if o.Account == c.account && o.Live() {
			used++
		}
	}
	return used, limit
}

// Start makes a created object usable and gives it its environment, which is stored inside the object's own
// tree. It does nothing to a running object.
func (c *Client) Start(ctx context.Context, ref string, env, secrets map[string]string) (obj Object, err error) {
	err = c.call(ctx, OpStart, target{ref: ref}, func(st *state, r Rule) (*Object, error) {
		o, err := st.live(ref)
		if err != nil {
			return nil, err
		}
		if o.State == StateCreated {
			if err := c.v.prepareTree(o, env, secrets); err != nil {
				return nil, err
			}
			o.State, o.ReadyAt = StateRunning, st.now()
			o.used(o.ReadyAt)
			switch r.Do {
			case DoSlowReady:
				o.ReadyAt = o.ReadyAt.Add(time.Duration(r.Delay))
			case DoStartLater:
				o.ReadyAt = o.ReadyAt.Add(time.Duration(r.Delay))
				o.BilledAt = o.ReadyAt
			case DoFailReady:
				o.FailAt = o.ReadyAt.Add(time.Duration(r.Delay))
				o.ReadyAt = o.FailAt.Add(time.Second)
			}
		}
		obj = o.clone()
		return o, nil
	})
	if err == nil && obj.Entry != nil && !obj.Entered {
		return c.enter(ctx, ref, obj)
	}
	return obj, err
}

// live returns the object, or the fault that says why it cannot be used.
func (st *state) live(ref string) (*Object, error) {
	o := st.Objects[ref]
	if o == nil {
		return nil, fault(CodeNotFound, "there is no object "+ref)
	}
	if !o.Live() {
		return nil, fault(CodeEnded, "the object has ended: "+o.Reason)
	}
	return o, nil
}

// Get returns objects by reference in one call; nil for a missing one.
func (c *Client) Get(ctx context.Context, refs ...string) (objs []*Object, now time.Time, err error) {
	t := target{}
	if len(refs) == 1 {
		t.ref = refs[0]
	}
	err = c.call(ctx, OpGet, t, func(st *state, _ Rule) (*Object, error) {
		now = st.now()
		for _, ref := range refs {
			if o := st.Objects[ref]; o != nil && o.Account == c.account {
				copied := o.clone()
				objs = append(objs, &copied)
			} else {
				objs = append(objs, nil)
			}
		}
		return nil, nil
	})
	return objs, now, err
}

// Find returns the account's object with that name; nil if none is visible.
func (c *Client) Find(ctx context.Context, name string) (obj *Object, err error) {
	err = c.call(ctx, OpFind, target{name: name}, func(st *state, _ Rule) (*Object, error) {
		if o := st.byName(name); o != nil && o.Account == c.account && !st.now().Before(o.VisibleAt) {
			copied := o.clone()
			obj = &copied
		}
		return nil, nil
	})
	return obj, err
}

// Delete ends an object and removes all of it, including the meter.
func (c *Client) Delete(ctx context.Context, ref string) error {
	return c.call(ctx, OpDelete, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o := st.Objects[ref]
		if o == nil {
			return nil, fault(CodeNotFound, "there is no object "+ref)
		}
		if err := errors.Join(c.v.drop(st, o), c.v.sweep(st)); err != nil {
			return nil, err
		}
		o.GoneAt = st.now()
		st.keepGhost(o)
		return nil, nil
	})
}

// keepGhost remembers a bounded number of deleted objects for lists that lag.
func (st *state) keepGhost(o *Object) {
	const most = 50
	st.Deleted[o.Ref] = o
	for len(st.Deleted) > most {
		oldest := o
		for _, g := range st.Deleted {
			if g.GoneAt.Before(oldest.GoneAt) {
				oldest = g
			}
		}
		delete(st.Deleted, oldest.Ref)
	}
}

// Extend moves the deadline of a live object, at most the plan's longest life after its creation.
func (c *Client) Extend(ctx context.Context, ref string, deadline time.Time) error {
	return c.call(ctx, OpExtend, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o, err := st.live(ref)
		if err != nil {
			return nil, err
		}
		if o.Unending {
			return nil, fault(CodeConflict, "the object is paused and has no deadline meanwhile")
		}
		if deadline.Sub(o.CreatedAt) > c.longest()+time.Minute {
			return nil, fault(CodeInvalid, "the deadline is further from the start than "+c.longest().String())
		}
		if c.trial && deadline.Before(o.Deadline) {
			return nil, fault(CodeNotOffered, "the trial plan moves a deadline only later")
		}
		o.Deadline = deadline.UTC()
		return o, nil
	})
}

// SetLabels rewrites an object's labels as edit returns them.
func (c *Client) SetLabels(ctx context.Context, ref string, edit func(present map[string]string) (map[string]string, error)) error {
	return c.call(ctx, OpLabel, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o := st.Objects[ref]
		if o == nil {
			return nil, fault(CodeNotFound, "there is no object "+ref)
		}
		edited, err := edit(o.Labels)
		if err == nil {
			err = checkLabels(edited)
		}
		if err != nil {
			return nil, err
		}
		o.Labels = edited
		return o, nil
	})
}

// label is what a label's value may be.
var label = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$`)

func checkLabels(all map[string]string) error {
	for name, value := range all {
		if !label.MatchString(value) {
			return fault(CodeInvalid, "the label "+name+" has a value of more than 63 letters, digits, dots, dashes and underscores")
		}
	}
	return nil
}

// Capacity returns the account's live objects and their limit.
func (c *Client) Capacity(ctx context.Context) (used, limit int64, now time.Time, err error) {
	err = c.call(ctx, OpCapacity, target{}, func(st *state, _ Rule) (*Object, error) {
		now = st.now()
		used, limit = c.quota(st)
		return nil, nil
	})
	return used, limit, now, err
}

// Usage returns the meter of one object, even an ended one.
func (c *Client) Usage(ctx context.Context, ref string) (obj Object, now time.Time, err error) {
	err = c.call(ctx, OpUsage, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o := st.Objects[ref]
		if o == nil {
			return nil, fault(CodeNotFound, "there is no object "+ref)
		}
		obj, now = o.clone(), st.now()
		return nil, nil
	})
	return obj, now, err
}
