package vendor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ImageEntrypoint is what every image starts with here.
var ImageEntrypoint = []string{"sh", "-c", "if [ -f entrypoint.sh ]; then exec sh entrypoint.sh; fi; sleep 90000000"}

// entryPatience bounds the real time in which an entrypoint is interpreted; one that is not over then never ends.
const entryPatience = 5 * time.Second

var errOutlives = errors.New("the entrypoint outlives the object")

// virtual is time that passes only for an entrypoint.
type virtual struct {
	left, passed time.Duration
	over         context.CancelCauseFunc
}

// pass lets d pass; false if the object has ended by then.
func (v *virtual) pass(d time.Duration) bool {
	if v.passed += d; v.passed >= v.left {
		v.over(errOutlives)
		return false
	}
	return true
}

// enter interprets the entrypoint of an object that has just started. No process of ours lives as long as an object, so
// it runs at once, in a time of its own where only sleep takes any: the object ends when it did.
func (c *Client) enter(ctx context.Context, ref string, obj Object) (Object, error) {
	root, err := c.v.openTree(&obj)
	if err != nil {
		return obj, err
	}
	defer func() { _ = root.Close() }()
	env, err := readEnv(root)
	if err != nil {
		return obj, err
	}
	now, err := c.v.Now()
	if err != nil {
		return obj, err
	}
	ctx, over := context.WithCancelCause(ctx)
	defer over(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, entryPatience, errOutlives)
	defer cancel()
	log := &logWriter{v: c.v, ref: ref}
	m := &machine{root: root, obj: obj, env: env, hear: c.v.hear, time: &virtual{left: obj.Deadline.Sub(now), over: over}}
	code, err := m.run(ctx, Command{Argv: obj.Entry, Stdout: log, Stderr: log})
	log.flush()
	if err != nil && !errors.Is(err, errOutlives) {
		return obj, err
	}
	outlives := err != nil
	err = c.v.transact(context.WithoutCancel(ctx), func(st *state) error {
		o, err := st.live(ref)
		if err != nil {
			return err
		}
		o.Entered = true
		if !outlives {
			o.ExitAt, o.ExitCode = o.ReadyAt.Add(m.time.passed), code
		}
		obj = o.clone()
		return nil
	})
	return obj, err
}

// exit ends an object whose entrypoint has ended by now.
func (o *Object) exit(now time.Time) {
	at := o.ExitAt.Add(o.Paused(now)) // it stands still while the object is paused
	if o.ExitAt.IsZero() || now.Before(at) || !at.Before(o.Deadline) {
		return
	}
	end := StateEnded
	if o.ExitCode != 0 {
		end = StateFailed
	}
	o.end(end, at, fmt.Sprintf("its entrypoint ended with exit code %d", o.ExitCode))
}
