package verceltest

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// homes are the users of a sandbox; they are one.
var homes = map[string]string{"vercel-sandbox": "/home/vercel-sandbox", "root": "/root"}

// cwd is where a sandbox's commands begin.
const cwd = "/vercel/sandbox"

// sandbox is one of the project's, with its only session. Vendor.mu guards it.
type sandbox struct {
	*box.Box
	name, sessionID string
	region          string
	vcpus           int
	persistent      bool
	runtime, image  string
	tags, env       map[string]string
	policy          map[string]any
	routes          []route
	status          string
	made, begun     time.Time // requested; running since
	timeout         time.Duration
	toStop          time.Time // when a stop was asked for
	stopped         time.Time
	meter           Meter
	commands        map[string]*command
	life            context.Context //nolint:containedctx // it is the life of the sandbox's commands
	cut             context.CancelFunc
}

type route struct {
	port      int
	subdomain string
}

// Meter is what a session has used.
type Meter struct {
	CPU                       time.Duration
	EgressBytes, IngressBytes int64
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

// tick lets what is due happen: beginnings, stops and deadlines.
func (v *Vendor) tick() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.clock.Now()
	for _, s := range v.sandboxes {
		if s.status == "pending" && !now.Before(s.made.Add(v.lag.Begin)) {
			s.status, s.begun = "running", s.made.Add(v.lag.Begin)
		}
		if s.status == "running" && !now.Before(s.begun.Add(s.timeout)) {
			v.halt(s, s.begun.Add(s.timeout))
		}
		if (s.status == "stopping" || s.status == "snapshotting") && !now.Before(s.toStop.Add(v.lag.Stop)) {
			s.status, s.stopped = "stopped", s.toStop.Add(v.lag.Stop)
		}
	}
}

// halt begins to stop a session: nothing runs in it any more.
func (v *Vendor) halt(s *sandbox, when time.Time) {
	s.status, s.toStop = "stopping", when
	s.cut()
	if err := s.Kill(); err != nil {
		v.t.Errorf("the end of %s: %v", s.name, err)
	}
}

func ms(t time.Time) int64 { return t.UnixMilli() }

// told is what the vendor tells of a sandbox.
func (s *sandbox) told() map[string]any {
	out := map[string]any{"name": s.name, "persistent": s.persistent, "region": s.region, "vcpus": s.vcpus, "memory": s.vcpus * 2048,
		"timeout": s.timeout.Milliseconds(), "createdAt": ms(s.made), "updatedAt": ms(s.made), "currentSessionId": s.sessionID,
		"status": s.status, "cwd": cwd, "networkPolicy": s.policy}
	if s.tags != nil {
		out["tags"] = s.tags
	}
	for name, text := range map[string]string{"runtime": s.runtime, "image": s.image} {
		if text != "" {
			out[name] = text
		}
	}
	if !s.begun.IsZero() {
		out["expiresAt"] = ms(s.begun.Add(s.timeout))
	}
	if s.status == "stopped" {
		out["statusUpdatedAt"] = ms(s.stopped)
		out["totalActiveCpuDurationMs"], out["totalDurationMs"] = s.meter.CPU.Milliseconds(), s.stopped.Sub(s.begun).Milliseconds()
		out["totalEgressBytes"], out["totalIngressBytes"] = s.meter.EgressBytes, s.meter.IngressBytes
	}
	return out
}

// session is what the vendor tells of a sandbox's session.
func (s *sandbox) session() map[string]any {
	out := map[string]any{"id": s.sessionID, "memory": s.vcpus * 2048, "vcpus": s.vcpus, "region": s.region,
		"timeout": s.timeout.Milliseconds(), "status": s.status, "requestedAt": ms(s.made), "createdAt": ms(s.made), "updatedAt": ms(s.made),
		"cwd": cwd}
	for name, t := range map[string]time.Time{"startedAt": s.begun, "requestedStopAt": s.toStop, "stoppedAt": s.stopped} {
		if !t.IsZero() {
			out[name] = ms(t)
		}
	}
	if s.status == "stopped" {
		out["duration"], out["activeCpuDurationMs"] = s.stopped.Sub(s.begun).Milliseconds(), s.meter.CPU.Milliseconds()
	}
	return out
}

func (s *sandbox) open() []map[string]any {
	out := []map[string]any{}
	for _, r := range s.routes {
		out = append(out, map[string]any{"url": "https://" + r.subdomain + ".vercel.run", "subdomain": r.subdomain, "port": r.port})
	}
	return out
}

func (s *sandbox) whole() answer {
	return answer{body: map[string]any{"sandbox": s.told(), "session": s.session(), "routes": s.open()}}
}

// the sandbox of a request, or a 404.
func (v *Vendor) the(r *http.Request) (*sandbox, error) {
	if s := v.sandboxes[r.PathValue("name")]; s != nil {
		return s, nil
	}
	return nil, fail(http.StatusNotFound, "not_found", "Sandbox not found.")
}

// its is the sandbox of a request's session; running wants it to run.
func (v *Vendor) its(r *http.Request, running bool) (*sandbox, error) {
	for _, s := range v.sandboxes {
		if s.sessionID != r.PathValue("sessionId") {
			continue
		}
		switch {
		case !running || s.status == "running":
			return s, nil
		case s.status == "pending":
			return nil, fail(http.StatusUnprocessableEntity, "sandbox_pending", "The sandbox has not started yet.")
		case s.status == "stopping":
			return nil, fail(http.StatusUnprocessableEntity, "sandbox_stopping", "The sandbox is stopping.")
		case s.status == "snapshotting":
			return nil, fail(http.StatusUnprocessableEntity, "sandbox_snapshotting", "The sandbox is being snapshotted.")
		}
		return nil, fail(http.StatusGone, "sandbox_stopped", "The sandbox has stopped.")
	}
	return nil, fail(http.StatusNotFound, "not_found", "Session not found.")
}

var errNoSuch = errors.New("the vendor has no such thing")

// Sandbox is what the vendor knows of one.
type Sandbox struct {
	Name, Status, Region, Image, Runtime string
	VCPUs                                int
	Tags                                 map[string]string
	Policy                               map[string]any
	Ports                                []int
	Persistent                           bool
	Commands                             []string // the words of each command so far, and what it printed
	Root                                 string   // its root folder on this machine
	Ends                                 time.Time
}

// Sandboxes lists all that exist, the newest first, whether or not a list shows them yet.
func (v *Vendor) Sandboxes() []Sandbox {
	v.tick()
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []Sandbox
	for _, s := range v.ordered() {
		one := Sandbox{Name: s.name, Status: s.status, Region: s.region, Image: s.image, Runtime: s.runtime, VCPUs: s.vcpus,
			Tags: maps.Clone(s.tags), Policy: maps.Clone(s.policy), Persistent: s.persistent, Root: s.Root,
			Ends: s.made.Add(v.lag.Begin).Add(s.timeout)}
		for _, r := range s.routes {
			one.Ports = append(one.Ports, r.port)
		}
		for _, c := range s.commands {
			one.Commands = append(one.Commands, strings.Join(append([]string{c.name}, c.args...), " ")+"\n"+c.said())
		}
		out = append(out, one)
	}
	return out
}

// change does something to a sandbox behind everybody's back.
func (v *Vendor) change(name string, do func(*sandbox) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.sandboxes[name]; s != nil {
		return do(s)
	}
	return errNoSuch
}

// Vanish removes a sandbox.
func (v *Vendor) Vanish(name string) error {
	return v.change(name, func(s *sandbox) error {
		delete(v.sandboxes, name)
		s.cut()
		return s.Remove()
	})
}

// Relabel changes one of a sandbox's tags.
func (v *Vendor) Relabel(name, key, value string) error {
	return v.change(name, func(s *sandbox) error { s.tags[key] = value; return nil })
}

// Charge sets what a sandbox has used.
func (v *Vendor) Charge(name string, m Meter) error {
	return v.change(name, func(s *sandbox) error { s.meter = m; return nil })
}
