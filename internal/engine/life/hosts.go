package life

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/lifecycle"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/plan"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckHost validates a host's arguments without dialing. Errors are KindInvalid, or KindUnsupported if no
// extension can use such a host yet.
func (m *Manager) CheckHost(h extensions.Host) error {
	if err := profile.CheckName(h.Name); err != nil {
		return err
	}
	if n := len(h.Ref()); n > extensions.MaxHostRef {
		return extensions.Invalid("host %q: its ref has %d bytes; at most %d are accepted", "shorten its labels or keys", h.Name,
			n, extensions.MaxHostRef)
	}
	if h.Local == (h.SSH != nil) {
		return extensions.Invalid("host %q: set exactly one of ssh and local = true", "set local = true for this machine, or an ssh block",
			h.Name)
	}
	if h.SSH != nil {
		if err := h.SSH.Check("ssh"); err != nil {
			return err
		}
		if !m.places.Has(extensions.PlaceHost) {
			return extensions.Errorf(extensions.KindUnsupported, "host %q: no extension in the catalog uses hosts over SSH", h.Name).
				WithRemedy("use local = true for this machine")
		}
	}
	if h.ProxyImage != "" {
		if h.Local {
			return extensions.Invalid("host %q: proxy_image has no effect on this machine", "remove it, or give the host an ssh block", h.Name)
		}
		if !pinnedImage.MatchString(h.ProxyImage) {
			return extensions.Invalid("host %q: proxy_image %q is not pinned by its digest",
				"write name@sha256: and the 64 hex digits that `docker image inspect --format '{{.RepoDigests}}'` shows",
				h.Name, extensions.Clean(h.ProxyImage, 200))
		}
	}
	if h.Capacity != nil && h.Capacity.MaxSandboxes < 1 {
		return extensions.Invalid("host %q: capacity.max_sandboxes is %d", "set at least 1, or remove capacity", h.Name, h.Capacity.MaxSandboxes)
	}
	if c := h.Cost; c != nil {
		if c.PerHour != "" {
			if _, err := meter.ParseMoney(c.PerHour); err != nil {
				return extensions.Invalid("host %q: cost.per_hour: %w", "write an amount and a currency, such as 0.40 USD", h.Name, err)
			}
		}
		if err := meter.CheckHostCost(*c); err != nil {
			return extensions.Invalid("host %q: %w", extensions.RemedyOf(err), h.Name, err)
		}
	}
	for k, v := range h.Labels {
		if profile.CheckName(k) != nil || len(v) > 256 || strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 }) {
			return extensions.Invalid("host %q: label %q is not valid",
				"use a name as the key, and a value of at most 256 bytes without control characters", h.Name, extensions.Clean(k, 80))
		}
	}
	return nil
}

// pinnedImage is name[:tag]@sha256:digest.
var pinnedImage = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._:/-]{0,254}@sha256:[0-9a-f]{64}$`)

// RegisterHost validates, probes and records a host. A local host is not dialed. former is the ref under
// which the caller registered it before, "" if it did not. A host registered with other arguments than
// former belongs to somebody else and stays unchanged (KindConflict). One registered with the same
// arguments is the caller's too; if the caller had not registered it, the view's Shared says so.
func (m *Manager) RegisterHost(ctx context.Context, h extensions.Host, former string) (HostView, error) {
	if err := m.CheckHost(h); err != nil {
		return HostView{}, err
	}
	l, err := m.book.Changer(ctx)
	if err != nil {
		return HostView{}, err
	}
	switch row, err := l.Host(ctx, m.account, h.Name); {
	case absent(err):
	case err != nil:
		return HostView{}, err
	case row.Ref != h.Ref() && row.Ref != former:
		return HostView{}, registeredOtherwise(row, h)
	}
	v := HostView{Host: h, Ref: h.Ref()}
	var found map[place.Address]extensions.Facts
	if v.Facts, found, err = m.probeHost(ctx, h); err != nil {
		return HostView{}, err
	}
	row, err := l.PutHost(ctx, ledger.Host{Account: m.account, Name: h.Name, Ref: v.Ref, Facts: v.Facts, Replaces: []string{former}})
	if extensions.IsKind(err, extensions.KindConflict) { // another run was faster
		if row, again := l.Host(ctx, m.account, h.Name); again == nil {
			err = registeredOtherwise(row, h)
		}
	}
	if err == nil {
		m.keepFacts(ctx, found)
		if row.Existed && former == "" {
			v.Shared = registeredTwice(row)
		}
	}
	return v, err
}

// GetHost probes a host again. It never needs the ledger and writes nothing.
func (m *Manager) GetHost(ctx context.Context, h extensions.Host) (v HostView, err error) {
	if err := m.CheckHost(h); err != nil {
		return HostView{}, err
	}
	v = HostView{Host: h, Ref: h.Ref()}
	v.Facts, _, err = m.probeHost(ctx, h)
	return v, err
}

// LookupHost finds a registered host by name. NotFound names the closest names.
func (m *Manager) LookupHost(ctx context.Context, name string) (extensions.Host, error) {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return extensions.Host{}, err
	}
	row, err := l.Host(ctx, m.account, name)
	if absent(err) {
		return extensions.Host{}, m.unknownHost(ctx, l, name)
	}
	if err != nil {
		return extensions.Host{}, err
	}
	return extensions.ParseHostRef(row.Ref)
}

// Hosts lists the account's registered hosts by name, each with the facts of its last registration.
func (m *Manager) Hosts(ctx context.Context) ([]HostView, error) {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := l.Hosts(ctx, m.account)
	if err != nil {
		return nil, err
	}
	out := make([]HostView, 0, len(rows))
	for _, row := range rows {
		h, err := extensions.ParseHostRef(row.Ref)
		if err != nil {
			return nil, err
		}
		out = append(out, HostView{Host: h, Ref: row.Ref, Facts: row.Facts, ProbedAt: row.UpdatedAt})
	}
	return out, nil
}

func (m *Manager) unknownHost(ctx context.Context, l *ledger.Ledger, name string) error {
	hosts, err := l.Hosts(ctx, m.account)
	if err != nil {
		return err
	}
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	if near := strictyaml.NearestN(name, names, 3); len(near) > 0 {
		names = near
	}
	x := extensions.Errorf(extensions.KindNotFound, "account %[2]s has no registered host %[1]q", extensions.Clean(name, 80), m.account)
	if len(names) == 0 {
		return x.WithRemedy("register it with a sandboxer_host; in the same configuration, use its ref instead of its name")
	}
	return x.WithRemedy("registered: %s", strings.Join(names[:min(3, len(names))], ", "))
}

// ForgetHost removes a host from the ledger. Without force, it returns KindConflict while sandboxes live
// on the host. An unknown host is success. So is one registered with another ref: it belongs to somebody
// else and stays.
func (m *Manager) ForgetHost(ctx context.Context, name, ref string, force bool) error {
	r, err := m.book.Reader(ctx)
	if err != nil {
		return err
	}
	if row, err := r.Host(ctx, m.account, name); absent(err) || err == nil && row.Ref != ref {
		return nil
	}
	l, err := m.book.Changer(ctx)
	if err != nil {
		return err
	}
	rows, err := l.List(ctx, ledger.Filter{Account: m.account, Host: name, Live: true})
	if err != nil {
		return err
	}
	var on []string
	for _, row := range rows {
		if lifecycle.Usable(row.State) && !lifecycle.Overdue(m.book.Now(), row.ExpiresAt) {
			on = append(on, fmt.Sprintf("%s (%s)", row.ID, row.Name))
		}
	}
	if len(on) > 0 && !force {
		return extensions.Errorf(extensions.KindConflict, "host %q has live sandboxes (%d): %s", name, len(on),
			strings.Join(on[:min(5, len(on))], ", ")).
			WithRemedy("destroy them first, or set force_destroy = true to remove the host while they run")
	}
	return l.DeleteHost(ctx, m.account, name)
}

// HostsMoved reports whether the hosts of a request no longer include the sandbox's machine, so that the
// sandbox must be re-created. A bare name stands for the machine of that name.
func HostsMoved(rec plan.Receipt, hosts []string) bool {
	if rec.Host == "" || len(hosts) == 0 {
		return false
	}
	at, err := extensions.ParseHostRef(rec.Host)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(hosts, func(ref string) bool {
		if !extensions.IsHostRef(ref) {
			return ref == at.Name
		}
		h, err := extensions.ParseHostRef(ref)
		return err == nil && sameMachine(h, at)
	})
}

// sameMachine compares what identifies a machine: its name and how it is dialed, not its labels, price or
// capacity.
func sameMachine(a, b extensions.Host) bool {
	a = extensions.Host{Name: a.Name, Local: a.Local, SSH: a.SSH}
	b = extensions.Host{Name: b.Name, Local: b.Local, SSH: b.SSH}
	return a.Ref() == b.Ref()
}

// HostTaken returns KindConflict if the name of h is registered with other arguments; nil if not, or if
// that cannot be determined. It does not dial.
func (m *Manager) HostTaken(ctx context.Context, h extensions.Host) error {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil //nolint:nilerr // whoever registers it is told
	}
	row, err := l.Host(ctx, m.account, h.Name)
	if err != nil || row.Ref == h.Ref() {
		return nil //nolint:nilerr // nobody holds it, as far as can be known
	}
	return registeredOtherwise(row, h)
}

// HostShared returns KindConflict if h is already registered with the same arguments; nil if not, or if
// that cannot be determined. It does not dial.
func (m *Manager) HostShared(ctx context.Context, h extensions.Host) error {
	l, err := m.book.Reader(ctx)
	if err != nil {
		return nil //nolint:nilerr // whoever registers it is told
	}
	row, err := l.Host(ctx, m.account, h.Name)
	if err != nil || row.Ref != h.Ref() {
		return nil //nolint:nilerr // nobody holds it, as far as can be known
	}
	return registeredTwice(row)
}
