package e2btest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// The states that the vendor has.
const (
	running = "running"
	paused  = "paused"
)

// sandbox is one of the account's. Vendor.mu guards it.
type sandbox struct {
	*box.Box
	id, templateID, alias   string
	size                    Template
	made                    time.Time // when it was created; lists show it a delay later
	started, ends           time.Time // of this run; of a paused one, when that was
	maxLife                 time.Duration
	state                   string
	metadata, env           map[string]string
	network                 map[string]any
	internet                *bool
	autoPause, autoResume   bool
	accessToken, trafficKey string
	log                     []map[string]any
	processList             *processes
	// streams ends with the sandbox's run: every connection into it breaks.
	streams context.Context //nolint:containedctx // it is the life of the sandbox's connections
	cut     context.CancelFunc
}

// letters makes an identifier as the vendor does.
func letters(n int) string {
	const of = "abcdefghijklmnopqrstuvwxyz0123456789"
	out := make([]byte, n)
	for i := range out {
		out[i] = of[rand.IntN(len(of))]
	}
	return string(out)
}

func token() string {
	out := make([]byte, 32)
	for i := range out {
		out[i] = byte(rand.IntN(256))
	}
	return hex.EncodeToString(out)
}

// boot starts a run of s that ends after d.
func (v *Vendor) boot(s *sandbox, d time.Duration) {
	s.state, s.started = running, v.clock.Now()
	s.ends = s.started.Add(d)
	s.maxLife = time.Duration(v.plan.MaxHours) * time.Hour
	s.streams, s.cut = context.WithCancel(context.Background())
	s.processList.setShut(false)
}

// prolong sets the deadline to d from now. The vendor cuts it, silently, to the longest life of a run.
func (s *sandbox) prolong(now time.Time, d time.Duration, shorter bool) error {
	if s.maxLife > 0 {
		if now.Sub(s.started) > s.maxLife {
			return fail(http.StatusBadRequest, "Max instance length exceeded")
		}
		d = min(d, s.maxLife-now.Sub(s.started))
	}
	if to := now.Add(d); shorter || to.After(s.ends) {
		s.ends = to
	}
	return nil
}

// end removes the sandbox with everything in it.
func (s *sandbox) end() error {
	s.cut()
	s.processList.setShut(true)
	err := s.Remove()
	s.processList.wait()
	return err
}

// hold stops its run. Without memory, its processes are gone when it goes on.
func (v *Vendor) hold(s *sandbox, memory bool) error {
	s.cut()
	s.processList.setShut(true)
	stop := s.Freeze
	if !memory {
		stop = s.Kill
	}
	s.state, s.ends = paused, v.clock.Now()
	return stop()
}

// expire ends what is overdue. A paused sandbox has no deadline.
func (v *Vendor) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.clock.Now()
	for id, s := range v.sandboxes {
		if s.state != running || now.Before(s.ends) {
			continue
		}
		var err error
		if s.autoPause {
			err = v.hold(s, true)
		} else {
			delete(v.sandboxes, id)
			err = s.end()
		}
		if err != nil {
			v.t.Errorf("the deadline of %s: %v", id, err)
		}
	}
}

// timeout is the life that a request asks for; nil is the vendor's default.
func (v *Vendor) timeout(seconds *int) (time.Duration, error) {
	if seconds == nil {
		return 15 * time.Second, nil
	}
	d := time.Duration(*seconds) * time.Second
	switch {
	case d <= 0:
		return 0, fail(http.StatusBadRequest, "Timeout must be greater than 0")
	case v.plan.MaxHours > 0 && d > time.Duration(v.plan.MaxHours)*time.Hour:
		return 0, fail(http.StatusBadRequest, fmt.Sprintf("Timeout cannot be greater than %d hours", v.plan.MaxHours))
	}
	return d, nil
}

// the sandbox of a request, or a 404.
func (v *Vendor) the(r *http.Request) (*sandbox, error) {
	id := r.PathValue("sandboxID")
	if s := v.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, fail(http.StatusNotFound, fmt.Sprintf("sandbox %q doesn't exist or you don't have access to it", id))
}

// room for one more: both of the vendor's meanings of 429.
func (v *Vendor) admit() error {
	now := v.clock.Now()
	if per := v.plan.CreatesPerSecond; per > 0 {
		first := max(0, len(v.recent)-per)
		if len(v.recent) >= per && now.Sub(v.recent[first]) < time.Second {
			f := fail(http.StatusTooManyRequests, "Rate limit exceeded, please try again later")
			f.header = http.Header{"Retry-After": {"1"}, "Ratelimit-Limit": {fmt.Sprint(per)}, "Ratelimit-Remaining": {"0"},
				"Ratelimit-Reset": {"1"}}
			return f
		}
		v.recent = append(v.recent[first:], now)
	}
	n := 0
	for s := range maps.Values(v.sandboxes) {
		if s.state == running {
			n++
		}
	}
	if v.plan.Concurrent > 0 && n >= v.plan.Concurrent {
		return fail(http.StatusTooManyRequests, fmt.Sprintf("you have reached the maximum number of concurrent E2B sandboxes (%d). "+
			"If you need more, please visit 'https://e2b.dev/docs/billing'", v.plan.Concurrent))
	}
	return nil
}

func (v *Vendor) closeStreams() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sandboxes {
		s.cut()
	}
}

var errNoSuch = errors.New("the vendor has no such thing")

// Sandbox is what the vendor knows of one.
type Sandbox struct {
	ID, State, TemplateID string
	Metadata, Env         map[string]string
	Network               map[string]any
	Internet              *bool // allow_internet_access, as it was asked for
	Secure, AutoPause     bool
	Started, Ends         time.Time
	Root                  string // its root folder on this machine
}

// Sandboxes lists all that exist, whether or not a list shows them yet.
func (v *Vendor) Sandboxes() []Sandbox {
	v.expire()
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []Sandbox
	for _, s := range v.ordered() {
		out = append(out, Sandbox{ID: s.id, State: s.state, TemplateID: s.templateID, Metadata: maps.Clone(s.metadata), Env: maps.Clone(s.env),
			Network: maps.Clone(s.network), Internet: s.internet, Secure: s.accessToken != "", AutoPause: s.autoPause,
			Started: s.started, Ends: s.ends, Root: s.Root})
	}
	return out
}

// Vanish ends a sandbox behind everybody's back.
func (v *Vendor) Vanish(id string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sandboxes[id]
	if s == nil {
		return errNoSuch
	}
	delete(v.sandboxes, id)
	return s.end()
}

// Relabel changes one value of a sandbox's metadata behind everybody's back.
func (v *Vendor) Relabel(id, key, value string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sandboxes[id]
	if s == nil {
		return errNoSuch
	}
	s.metadata[key] = value
	return nil
}

// Sever breaks every connection into a sandbox; it goes on running.
func (v *Vendor) Sever(id string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.sandboxes[id]
	if s == nil {
		return errNoSuch
	}
	s.cut()
	s.streams, s.cut = context.WithCancel(context.Background())
	return nil
}
