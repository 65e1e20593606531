package engine

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
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// CheckHost validates a host's arguments without dialling. Errors are
// KindInvalid, or KindUnsupported where no extension can use such a host yet.
func (e *Engine) CheckHost(h Host) error {
	if err := CheckName(h.Name); err != nil {
		return err
	}
	if h.Local == (h.SSH != nil) {
		return extensions.Invalid("host %q: exactly one of ssh and local = true is needed", "write local = true for this machine, else an ssh block", h.Name)
	}
	if h.SSH != nil {
		if err := checkSSH("ssh", *h.SSH); err != nil {
			return err
		}
		if !e.places.Has(extensions.PlaceHost) {
			return extensions.Errorf(extensions.KindUnsupported, "host %q: no extension of this build uses hosts over SSH", h.Name).
				WithRemedy("use local = true for this machine")
		}
	}
	if h.ProxyImage != "" {
		if h.Local {
			return extensions.Invalid("host %q: proxy_image has no meaning on this machine", "leave it out, or give the host an ssh block", h.Name)
		}
		if !pinnedImage.MatchString(h.ProxyImage) {
			return extensions.Invalid("host %q: proxy_image %q is not pinned by its digest", "write name@sha256: and the 64 hex digits that `docker image inspect --format '{{.RepoDigests}}'` shows",
				h.Name, extensions.Clean(h.ProxyImage, 200))
		}
	}
	if h.Capacity != nil && h.Capacity.MaxSandboxes < 1 {
		return extensions.Invalid("host %q: capacity.max_sandboxes is %d", "give at least 1, or leave capacity out", h.Name, h.Capacity.MaxSandboxes)
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
		if CheckName(k) != nil || len(v) > 256 || strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 }) {
			return extensions.Invalid("host %q: label %q cannot be used", "keys are names, values at most 256 bytes without control characters", h.Name, extensions.Clean(k, 80))
		}
	}
	return nil
}

// pinnedImage is name[:tag]@sha256:digest.
var pinnedImage = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._:/-]{0,254}@sha256:[0-9a-f]{64}$`)

func checkSSH(at string, s extensions.SSH) error {
	if (s.Address == "") == (s.Alias == "") {
		return extensions.Invalid("%s: exactly one of address and alias is needed", "alias is a Host of ~/.ssh/config", at)
	}
	if s.Port < 0 || s.Port > 65535 {
		return extensions.Invalid("%s: port %d is not between 1 and 65535", "leave it out for 22", at, s.Port)
	}
	for field, v := range map[string]string{"address": s.Address, "alias": s.Alias, "user": s.User} {
		if strings.HasPrefix(v, "-") || strings.ContainsFunc(v, func(r rune) bool { return r <= 0x20 || r == 0x7f }) {
			return extensions.Invalid("%s.%s: %q cannot be used", "no spaces, no control characters, no leading '-'", at, field, extensions.Clean(v, 80))
		}
	}
	given := 0
	for _, v := range []string{s.HostKey, s.KnownHosts, s.HostCA} {
		if v != "" {
			given++
		}
	}
	if given > 1 {
		return extensions.Invalid("%s: host_key, known_hosts and host_ca exclude each other", "keep the one you trust", at)
	}
	for i, j := range s.Jump {
		if err := checkSSH(fmt.Sprintf("%s.jump[%d]", at, i), j); err != nil {
			return err
		}
	}
	return nil
}

// RegisterHost validates, probes and records a host. For a local host nothing
// is dialled. Former is the ref it was registered with by the caller, "" where it
// was not: one that is registered with other arguments than that is somebody
// else's, and stays as it is (KindConflict). One that is registered with the same
// is the caller's too; where the caller had not registered it, the view's Shared says so.
func (e *Engine) RegisterHost(ctx context.Context, h Host, former string) (HostView, error) {
	if err := e.CheckHost(h); err != nil {
		return HostView{}, err
	}
	l, err := e.changer(ctx)
	if err != nil {
		return HostView{}, err
	}
	switch row, err := l.Host(ctx, e.account, h.Name); {
	case absent(err):
	case err != nil:
		return HostView{}, err
	case row.Ref != h.Ref() && row.Ref != former:
		return HostView{}, registeredOtherwise(row, h)
	}
	v, err := e.GetHost(ctx, h)
	if err != nil {
		return HostView{}, err
	}
	row, err := l.PutHost(ctx, ledger.Host{Account: e.account, Name: h.Name, Ref: v.Ref, Facts: v.Facts, Replaces: []string{former}})
	if extensions.IsKind(err, extensions.KindConflict) { // somebody was quicker
		if row, again := l.Host(ctx, e.account, h.Name); again == nil {
			err = registeredOtherwise(row, h)
		}
	}
	if err == nil && row.Existed && former == "" {
		v.Shared = registeredTwice(row)
	}
	return v, err
}

// GetHost probes a host again. It never needs the ledger and writes nothing.
func (e *Engine) GetHost(ctx context.Context, h Host) (HostView, error) {
	if err := e.CheckHost(h); err != nil {
		return HostView{}, err
	}
	v := HostView{Host: h, Ref: h.Ref()}
	want := extensions.PlaceHost
	if h.Local {
		want = extensions.PlaceMachine
	}
	for _, b := range e.catalog.Bindings {
		if b.Descriptor.Place != want || !b.Descriptor.Has(extensions.PowerProbe) {
			continue
		}
		at, err := e.places.Open(ctx, place.Address{Binding: b.ID, Account: e.account, Host: v.Ref})
		if err != nil {
			return HostView{}, err
		}
		v.Facts, err = at.Probe(ctx)
		return v, err
	}
	return v, extensions.Errorf(extensions.KindUnsupported, "no extension of the catalog can use host %q", h.Name)
}

// LookupHost finds a registered host by name. NotFound names the nearest ones.
func (e *Engine) LookupHost(ctx context.Context, name string) (Host, error) {
	l, err := e.reader(ctx)
	if err != nil {
		return Host{}, err
	}
	row, err := l.Host(ctx, e.account, name)
	if absent(err) {
		return Host{}, e.unknownHost(ctx, l, name)
	}
	if err != nil {
		return Host{}, err
	}
	return extensions.ParseHostRef(row.Ref)
}

func (e *Engine) unknownHost(ctx context.Context, l ledger.Ledger, name string) error {
	hosts, err := l.Hosts(ctx, e.account)
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
	x := extensions.Errorf(extensions.KindNotFound, "no host named %q is registered in account %s", extensions.Clean(name, 80), e.account)
	if len(names) == 0 {
		return x.WithRemedy("register it with a sandboxer_host, and pass its ref instead of its name where it is made in the same configuration")
	}
	return x.WithRemedy("registered: %s", strings.Join(names[:min(3, len(names))], ", "))
}

// ForgetHost removes a host from the ledger; refused with KindConflict while
// sandboxes live on it, unless force. An unknown one is success, and so is one
// that is registered with another ref, which is somebody else's and stays.
func (e *Engine) ForgetHost(ctx context.Context, name, ref string, force bool) error {
	r, err := e.reader(ctx)
	if err != nil {
		return err
	}
	if row, err := r.Host(ctx, e.account, name); absent(err) || err == nil && row.Ref != ref {
		return nil
	}
	l, err := e.changer(ctx)
	if err != nil {
		return err
	}
	rows, err := l.List(ctx, ledger.Filter{Account: e.account, Host: name, Live: true})
	if err != nil {
		return err
	}
	var on []string
	for _, row := range rows {
		if lifecycle.Usable(row.State) && !lifecycle.Overdue(e.now(), row.ExpiresAt) {
			on = append(on, fmt.Sprintf("%s (%s)", row.ID, row.Name))
		}
	}
	if len(on) > 0 && !force {
		return extensions.Errorf(extensions.KindConflict, "host %q has %d live: %s", name, len(on), strings.Join(on[:min(5, len(on))], ", ")).
			WithRemedy("destroy them first, or set force_destroy = true to forget the host while they run")
	}
	return l.DeleteHost(ctx, e.account, name)
}

// HostsMoved reports whether the hosts of a request no longer include the
// machine a sandbox runs on: then it has to be made anew. A bare name counts
// as the machine of that name.
func HostsMoved(rec Receipt, hosts []string) bool {
	if rec.Host == "" || len(hosts) == 0 {
		return false
	}
	at, err := extensions.ParseHostRef(rec.Host)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(hosts, func(ref string) bool {
		if !strings.HasPrefix(strings.TrimSpace(ref), "{") {
			return ref == at.Name
		}
		h, err := extensions.ParseHostRef(ref)
		return err == nil && sameMachine(h, at)
	})
}

// sameMachine compares what makes a host another machine: its name and how it
// is dialled, not its labels, price or capacity.
func sameMachine(a, b extensions.Host) bool {
	a = extensions.Host{Name: a.Name, Local: a.Local, SSH: a.SSH}
	b = extensions.Host{Name: b.Name, Local: b.Local, SSH: b.SSH}
	return a.Ref() == b.Ref()
}
