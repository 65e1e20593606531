package vendor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Client speaks to the service for one account. Its errors are *Fault, the context's, or the folder's own.
type Client struct {
	v       *Vendor
	account string
	key     string
	lag     time.Duration
	trial   bool
}

// Client returns the account's client. Find and list miss objects younger than lag; 0 is a strongly
// consistent client.
func (v *Vendor) Client(account, key string, lag time.Duration) *Client {
	return &Client{v: v, account: account, key: key, lag: lag}
}

// OnTrial returns the client as the trial plan has it: objects live at most TrialTTL, none is kept, and none ends
// earlier than it was to.
func (c *Client) OnTrial() *Client {
	out := *c
	out.trial = true
	return &out
}

// longest is the longest life of an object.
func (c *Client) longest() time.Duration {
	if c.trial {
		return TrialTTL
	}
	return MaxTTL
}

// target names the object a call is about, for rules.
type target struct{ ref, name string }

// call runs fn as one operation of the service, modified by the script. vanish acts on the object that fn
// returns.
func (c *Client) call(ctx context.Context, op Op, t target, fn func(*state, Rule) (*Object, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := os.Stat(c.v.dir); op != OpCreate && errors.Is(err, fs.ErrNotExist) { // asking leaves nothing behind
		_, err := fn(newState(), Rule{})
		return err
	}
	var rule Rule
	var script Script
	var failed error
	perform := func(st *state) {
		st.script = script
		if failed = c.refuse(script, rule); failed == nil {
			failed = st.throttle(script, op)
		}
		if failed != nil {
			return
		}
		var o *Object
		show := st.hide(script, c.key)
		o, failed = fn(st, rule)
		show()
		if failed == nil && o != nil && rule.Do == DoVanish {
			failed = c.v.drop(st, o)
		}
	}
	at := false // whether it was performed at once
	err := c.v.transact(ctx, func(st *state) (err error) {
		if script, err = ReadScript(c.v.dir); err != nil {
			return err
		}
		rule = st.admit(script, op, t)
		if at = rule.immediate(); at {
			perform(st)
		}
		return nil
	})
	if err == nil && !at {
		if err = bendBefore(ctx, rule); err == nil {
			err = c.v.transact(ctx, func(st *state) error { perform(st); return nil })
		}
	}
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	switch rule.Do {
	case DoLoseAnswer:
		return fault(CodeAnswerLost, "the connection broke before the answer")
	case DoHang:
		<-ctx.Done()
		return fault(CodeAnswerLost, "the call was given up before the answer")
	}
	return nil
}

// admit counts the call and picks its rule; the zero Rule if none applies.
func (st *state) admit(s Script, op Op, t target) Rule {
	st.Calls[op]++
	return st.pick(s, op, st.names(t))
}

// names returns all words that a rule may use for the target.
func (st *state) names(t target) []string {
	names := []string{t.name}
	for _, o := range st.Objects {
		if o.Ref == t.ref || o.Name == t.name {
			names = append(names, o.Name, o.Title)
		}
	}
	return names
}

func (st *state) pick(s Script, op Op, names []string) Rule {
	for i, r := range s.Rules {
		if r.Op != op && r.Op != OpAny || !r.about(names) {
			continue
		}
		b, _ := json.Marshal(r) // plain fields only
		key := fmt.Sprintf("%d %s", i, b)
		hit := st.Hits[key]
		if r.Times > 0 && hit >= r.Skip+r.Times {
			continue
		}
		st.Hits[key]++
		if hit >= r.Skip {
			return r
		}
	}
	return Rule{}
}

func (r Rule) about(names []string) bool {
	return r.Name == "" || slices.Contains(names, r.Name)
}

// waits reports whether Delay passes before the call.
func (r Rule) waits() bool {
	return r.Delay > 0 && r.Do != DoSlowReady && r.Do != DoFailReady
}

// immediate reports whether a rule needs no time and no other change first.
func (r Rule) immediate() bool {
	return !r.waits() && r.Do != DoHangBefore
}

func (c *Client) refuse(s Script, r Rule) error {
	if f := r.before(); f != nil {
		return f
	}
	if s.RequireKey && c.key == "" {
		return fault(CodeUnauthorized, "a key is required")
	}
	return nil
}

// throttle takes a call, or refuses one that comes too soon.
func (st *state) throttle(s Script, op Op) error {
	every := time.Duration(s.Every[op])
	if every <= 0 {
		return nil
	}
	now := st.now()
	if rest := st.Free[op].Sub(now); rest > 0 {
		f := *actionFaults[DoThrottle]
		f.RetryAfter = rest
		return &f
	}
	st.Free[op] = now.Add(every)
	return nil
}

func bendBefore(ctx context.Context, r Rule) error {
	if r.waits() {
		if err := sleep(ctx, time.Duration(r.Delay)); err != nil {
			return err
		}
	}
	if r.Do == DoHangBefore {
		<-ctx.Done()
		return fault(CodeAnswerLost, "the call was given up before the answer") // the caller cannot know that nothing was done
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
