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

// probeFiles make up the operation facts.
var probeFiles = []string{"lease", "look", "timer", "folder", "remove", "memory", "toolbox", "subnet", "tries", "rules", "deny",
	"firewall", "proxy", "survey", "engine", "facts"}

// Probe implements extensions.Prober with one exec, and one channel that shows whether forwarding is
// allowed. If no proof of default deny is known, the host makes one, which takes a second or two and leaves
// nothing behind.
func (b *Backend) Probe(ctx context.Context) (extensions.Facts, []extensions.Observation, error) {
	found, all, err := b.probe(ctx)
	if err != nil {
		return extensions.Facts{}, nil, failed("probe", "", err)
	}
	return factsOf(b.host, found), all, nil
}

func (b *Backend) probe(ctx context.Context) (extensions.HostFacts, []extensions.Observation, error) {
	if err := ctx.Err(); err != nil {
		return extensions.HostFacts{}, nil, extensions.Errorf(extensions.KindInterrupted, "the host was not contacted: %w", err)
	}
	vars := map[string]string{"root": b.settings.root, "account": b.settings.account, "id": "", "lock_wait": lockWaitShort,
		"deny_proved": proofOf(b.stateDir, b.host).Read(), "allow_firewall": "", "all": "1", "guarded": ""}
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
		Elsewhere [][]string `json:"elsewhere"` // rows as in Containers, for other roots
	}
	err := b.client.Call(ctx, remote.Call{Script: script(probeFiles...), Vars: vars, Payload: w, Progress: w.progress}, &told)
	if err != nil {
		return extensions.HostFacts{}, nil, err
	}
	if told.Failure != nil {
		return extensions.HostFacts{}, nil, told.Failure.classify()
	}
	raw := told.Facts
	proofOf(b.stateDir, b.host).Keep(raw["proof"])
	engineOf(b.stateDir, b.host).Keep(raw["engine"])
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

// elsewhere reports sandboxes of the account whose folder is below another root: another login's, or one
// configured before. Whatever watches that root ends them in time; nothing here is certain that they are ours
// to end.
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
	return fmt.Sprintf("this account has sandboxes below another root: %s; they belong to another login or a former config.root. They expire "+
		"on their own; "+
		"a binding with that root can end them sooner", strings.Join(list, ", "))
}

// forwarding returns "refused" if the host's sshd forbids connections through it.
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

// watch compares clocks. It is the script's stdin: it gives one line when asked, and notes when the host
// received it.
type watch struct {
	r       *io.PipeReader
	w       *io.PipeWriter
	asked   chan struct{}
	sent    atomic.Int64 // nanoseconds since 1970 by our clock
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

// skew returns the host's clock minus ours, corrected by half the round trip; zero if unknown.
func (w *watch) skew() time.Duration {
	sent := w.sent.Load()
	if w.host == 0 || sent == 0 || w.arrived < sent {
		return 0
	}
	return time.Duration(w.host - (sent + (w.arrived-sent)/2)).Round(time.Millisecond)
}
