package composessh

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// probeFiles are what the operation facts is put together from.
var probeFiles = []string{"lease", "look", "timer", "remove", "memory", "toolbox", "subnet", "deny", "firewall", "proxy", "survey", "facts"}

// Probe implements extensions.HostProber: one exec, and one channel that tells
// whether forwarding is allowed. Where no proof of default deny is known it is
// made, which takes a second or two; nothing of it stays on the host.
func (b *Backend) Probe(ctx context.Context) (extensions.HostFacts, []extensions.Observation, error) {
	f, all, err := b.probe(ctx)
	return f, all, failed("probe", "", err)
}

func (b *Backend) probe(ctx context.Context) (extensions.HostFacts, []extensions.Observation, error) {
	if err := ctx.Err(); err != nil {
		return extensions.HostFacts{}, nil, extensions.Errorf(extensions.KindInterrupted, "nothing was asked of the host: %w", err)
	}
	vars := map[string]string{"root": b.settings.root, "account": b.settings.account, "id": "", "lock_wait": lockWaitShort,
		"deny_proved": denyProved(b.stateDir, b.host), "allow_firewall": "", "all": "1", "guarded": ""}
	for k, v := range subnetVars(b.settings.subnets, b.settings.subnetSize, nil) {
		vars[k] = v
	}
	if b.host.AllowFirewall {
		vars["allow_firewall"], vars["guarded"] = "1", "1"
	}
	w := newWatch()
	defer w.close()
	var told struct {
		answer
		Facts     rawFacts   `json:"facts"`
		Elsewhere [][]string `json:"elsewhere"` // rows as Containers, of other roots
	}
	err := b.client.Call(ctx, remote.Call{Script: script(probeFiles...), Vars: vars, Payload: w, Progress: w.progress}, &told)
	if err != nil {
		return extensions.HostFacts{}, nil, err
	}
	if told.Failure != nil {
		return extensions.HostFacts{}, nil, told.Failure.classify()
	}
	raw := told.Facts
	keepProof(b.stateDir, b.host, raw["proof"])
	raw["forwarding"] = b.forwarding(ctx)
	f := raw.facts(b.host)
	f.ClockSkew = w.skew()
	if note := elsewhere(told.Elsewhere, b.settings.account); note != "" {
		f.Notes = append(f.Notes, note)
	}
	if told.Containers == nil { // docker did not answer
		return f, nil, nil
	}
	return f, b.observeAll(parseRecords(told.Records), parseContainers(told.answer)), nil
}

// elsewhere tells of sandboxes of the account that have their folder below another
// root: another login's, or those of a root that was configured before. They end in
// their time by what watches that root; nothing here is sure that they are ours to end.
func elsewhere(rows [][]string, account string) string {
	const most = 5
	found := map[string]bool{}
	for _, r := range rows {
		if len(r) < 9 || r[1] != account {
			continue
		}
		if _, err := extensions.ParseID(r[0]); err == nil {
			found[r[0]+" in "+extensions.Clean(r[8], 200)] = true
		}
	}
	if len(found) == 0 {
		return ""
	}
	list := slices.Sorted(maps.Keys(found))
	if len(list) > most {
		list = append(list[:most], fmt.Sprintf("and %d more", len(found)-most))
	}
	return fmt.Sprintf("sandboxes of this account below another root: %s; they are another login's or of a former config.root, end in their time, "+
		"and can be ended sooner by a binding with that root", strings.Join(list, ", "))
}

// forwarding is "refused" where the host's sshd forbids connections through it.
func (b *Backend) forwarding(ctx context.Context) string {
	conn, err := b.client.Dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", "1"))
	if err == nil {
		_ = conn.Close()
		return ""
	}
	if extensions.IsKind(err, extensions.KindUnsupported) {
		return "refused"
	}
	return ""
}

// watch compares clocks: it is the script's stdin, which gives one line when it
// is asked to, and takes the time at which the host got it.
type watch struct {
	r       *io.PipeReader
	w       *io.PipeWriter
	asked   chan struct{}
	sent    atomic.Int64 // nanoseconds since 1970, our clock
	host    int64
	arrived int64
}

func newWatch() *watch {
	w := &watch{asked: make(chan struct{}, 1)}
	w.r, w.w = io.Pipe()
	go func() {
		if _, ok := <-w.asked; !ok {
			_ = w.w.Close()
			return
		}
		w.sent.Store(time.Now().UnixNano())
		_, _ = io.WriteString(w.w, "now\n")
		_ = w.w.Close()
	}()
	return w
}

func (w *watch) Read(p []byte) (int, error) { return w.r.Read(p) }

// progress is called by one goroutine at a time.
func (w *watch) progress(line string) {
	if line == "ready" {
		select {
		case w.asked <- struct{}{}:
		default:
		}
		return
	}
	if text, ok := strings.CutPrefix(line, "clock "); ok && w.arrived == 0 {
		w.arrived = time.Now().UnixNano()
		w.host, _ = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	}
}

func (w *watch) close() {
	_ = w.r.Close()
	select {
	case w.asked <- struct{}{}:
	default:
	}
}

// skew is the host's clock minus ours, half of the way there and back allowed
// for; zero where it was not told.
func (w *watch) skew() time.Duration {
	sent := w.sent.Load()
	if w.host == 0 || sent == 0 || w.arrived < sent {
		return 0
	}
	return time.Duration(w.host - (sent + (w.arrived-sent)/2)).Round(time.Millisecond)
}
