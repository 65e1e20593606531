package cli

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type hostView struct {
	Name      string               `json:"name"`
	Local     bool                 `json:"local"`
	Address   string               `json:"address,omitempty"`
	HostKey   string               `json:"host_key,omitempty"` // how the host is identified
	Usable    bool                 `json:"usable"`
	Facts     extensions.HostFacts `json:"facts"`
	FreeDisk  int64                `json:"free_disk_mb"`
	ClockSkew float64              `json:"clock_skew_seconds"` // host minus this machine
}

func (a *app) hostCommand() *cobra.Command {
	return group("host", "List, check and cost registered hosts", a.hostListCommand(), a.hostCheckCommand(), a.hostCostCommand())
}

// hostRecord is the stable JSON form of a registered host in a list.
type hostRecord struct {
	hostView
	ProbedAt time.Time `json:"probed_at"` // of facts and usable
}

func (a *app) hostListCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the account's registered hosts in the ledger",
		Long: "Lists the hosts registered by sandboxer_host, and what the probe of the last registration or change found there.\n" +
			"It contacts no host; `sandboxer host check` does.",
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				found, err := e.Hosts(c.Context())
				if err != nil {
					return err
				}
				records := make([]hostRecord, 0, len(found))
				for _, h := range found {
					records = append(records, hostRecord{viewOfHost(h), h.ProbedAt.UTC()})
				}
				return a.show(records, func(w io.Writer) error {
					if len(records) == 0 {
						_, err := fmt.Fprintf(w, "No hosts in account %s.\n", a.account())
						return err
					}
					return printHosts(w, records, time.Now())
				})
			})
		},
	}
	return a.watched(c)
}

func printHosts(w io.Writer, all []hostRecord, now time.Time) error {
	rows := [][]string{wide(w, []string{"NAME", "ADDRESS", "STATE", "PROBED"}, "HOST KEY", "SYSTEM", "DOCKER")}
	for _, h := range all {
		address, state := h.Address, "usable"
		if h.Local {
			address = "this machine"
		}
		if !h.Usable {
			state = "unusable"
		}
		rows = append(rows, wide(w, []string{h.Name, address, state, relative(h.ProbedAt, now)}, h.HostKey, h.Facts.OS+"/"+h.Facts.Arch,
			h.Facts.Docker))
	}
	return grid(w, rows)
}

func (a *app) hostCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check HOST",
		Short: "Probe a registered host and show what it offers and lacks",
		Long: "Probes a host registered by sandboxer_host and shows what it offers, what it lacks and how to fix that.\n\n" +
			"The exit code is 7 if no sandbox can run there, 5 if it does not answer, 6 if its key or the login is refused.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				h, err := e.LookupHost(c.Context(), given[0])
				if err != nil {
					return err
				}
				found, err := e.GetHost(c.Context(), h)
				if err != nil {
					return err
				}
				v := viewOfHost(found)
				if err := a.show(v, func(w io.Writer) error { return printHost(w, v) }); err != nil || v.Usable {
					return err
				}
				return extensions.Errorf(extensions.KindUnsupported, "no sandbox can run on host %q", v.Name).
					WithRemedy("see its notes for what is missing")
			})
		},
	}
}

func viewOfHost(found engine.HostView) hostView {
	h, f := found.Host, found.Facts
	v := hostView{Name: h.Name, Local: h.Local, Usable: len(f.Isolation) > 0, Facts: f, FreeDisk: f.FreeDisk, ClockSkew: f.ClockSkew.Seconds()}
	if s := h.SSH; s != nil {
		v.Address, v.HostKey = destination(*s), knownBy(*s)
	}
	return v
}

// destination is what a person would pass to ssh.
func destination(s extensions.SSH) string {
	out := s.Address
	if s.Alias != "" {
		out = s.Alias
	}
	if s.User != "" {
		out = s.User + "@" + out
	}
	if s.Port != 0 {
		out += " port " + strconv.FormatInt(s.Port, 10)
	}
	return out
}

// knownBy says how the host proves its identity.
func knownBy(s extensions.SSH) string {
	switch {
	case s.HostKey != "":
		return "pinned, " + fingerprint(s.HostKey)
	case s.HostCA != "":
		return "signed by the CA " + fingerprint(s.HostCA)
	case s.KnownHosts != "":
		return "in " + s.KnownHosts
	}
	return "in ~/.ssh/known_hosts"
}

// fingerprint is what `ssh-keygen -l` prints for a public key line.
func fingerprint(line string) string {
	for field := range strings.FieldsSeq(line) {
		if !strings.HasPrefix(field, "AAAA") {
			continue
		}
		if key, err := base64.StdEncoding.DecodeString(field); err == nil {
			sum := sha256.Sum256(key)
			return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
		}
	}
	return "by an invalid public key"
}

func printHost(w io.Writer, v hostView) error {
	f := v.Facts
	levels := make([]string, 0, len(f.Isolation))
	for _, l := range f.Isolation {
		levels = append(levels, string(l))
	}
	lines := [][2]string{
		{"name", v.Name},
		{"address", v.Address},
		{"host key", v.HostKey},
		{"system", f.OS + "/" + f.Arch},
		{"cpus", strconv.FormatInt(f.CPUs, 10)},
		{"memory", strconv.FormatInt(f.MemoryMB, 10) + " MiB"},
		{"free disk", mebibytes(v.FreeDisk)},
		{"isolation", strings.Join(levels, ", ")},
		{"docker", f.Docker},
		{"compose", f.Compose},
		{"kvm", yes(f.KVM)},
		{"gpu", yes(f.GPU)},
		{"egress", string(f.Egress)},
		{"expiry", string(f.Expiry)},
	}
	if !v.Local {
		lines = append(lines, [2]string{"clock skew", f.ClockSkew.Round(time.Millisecond).String()})
	}
	for _, n := range f.Notes {
		lines = append(lines, [2]string{"note", n})
	}
	return facts(w, lines)
}

func mebibytes(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10) + " MiB"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
