package extensions

import (
	"fmt"
	"strings"
	"time"
)

// Host is a machine the user owns, as a place for sandboxes. It contains no
// secret: identities are references to files, agents or commands.
type Host struct {
	Name          string            `json:"name,omitempty"`
	Local         bool              `json:"local,omitempty"` // this machine
	SSH           *SSH              `json:"ssh,omitempty"`
	Region        string            `json:"region,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Priority      int64             `json:"priority,omitempty"` // higher is preferred
	Capacity      *HostCapacity     `json:"capacity,omitempty"`
	Cost          *HostCost         `json:"cost,omitempty"`
	AllowFirewall bool              `json:"allow_firewall,omitempty"`
	// ProxyImage is the digest-pinned image ("name@sha256:…") of the proxy that
	// allows egress by name; "" = none on this host.
	ProxyImage string `json:"proxy_image,omitempty"`
}

// SSH is how to dial a host and verify its key.
type SSH struct {
	Address    string       `json:"address,omitempty"`
	Port       int64        `json:"port,omitempty"` // 1-65535; 0 = 22 or the alias's
	User       string       `json:"user,omitempty"`
	Alias      string       `json:"alias,omitempty"` // a Host of ~/.ssh/config
	HostKey    string       `json:"host_key,omitempty"`
	KnownHosts string       `json:"known_hosts,omitempty"`
	HostCA     string       `json:"host_ca,omitempty"`
	Identity   *SSHIdentity `json:"identity,omitempty"`
	Jump       []SSH        `json:"jump,omitempty"`
}

// SSHIdentity refers to a private key; it never holds one.
type SSHIdentity struct {
	PrivateKeyFile  string   `json:"private_key_file,omitempty"`
	CertificateFile string   `json:"certificate_file,omitempty"`
	Agent           bool     `json:"agent,omitempty"`
	Command         []string `json:"command,omitempty"` // prints a short-lived credential
}

// Check requires exactly one of address and alias. It refuses a port out of range, text
// that a command line would misread, and several ways to verify the host's key. The
// error is KindInvalid and starts with at.
func (s SSH) Check(at string) error {
	if (s.Address == "") == (s.Alias == "") {
		return Errorf(KindInvalid, "%s: set exactly one of address and alias", at).WithRemedy("alias is a Host of ~/.ssh/config")
	}
	if s.Port < 0 || s.Port > 65535 {
		return Errorf(KindInvalid, "%s: port %d is not between 1 and 65535", at, s.Port).WithRemedy("remove it to use port 22")
	}
	for _, f := range []struct{ name, value string }{{"address", s.Address}, {"alias", s.Alias}, {"user", s.User}} {
		if strings.HasPrefix(f.value, "-") || strings.ContainsFunc(f.value, func(r rune) bool { return r <= 0x20 || r == 0x7f }) {
			return Errorf(KindInvalid, "%s.%s: %q cannot be used", at, f.name,
				Clean(f.value, 80)).WithRemedy("no spaces, no control characters, no leading '-'")
		}
	}
	given := 0
	for _, v := range []string{s.HostKey, s.KnownHosts, s.HostCA} {
		if v != "" {
			given++
		}
	}
	if given > 1 {
		return Errorf(KindInvalid, "%s: host_key, known_hosts and host_ca exclude each other", at).WithRemedy("keep only the one that you trust")
	}
	for i, j := range s.Jump {
		if err := j.Check(fmt.Sprintf("%s.jump[%d]", at, i)); err != nil {
			return err
		}
	}
	return nil
}

// HostCapacity is the owner's limit for the host; 0 = no limit.
type HostCapacity struct {
	MaxSandboxes int64 `json:"max_sandboxes,omitempty"`
}

// HostCost is the cost and the size of the whole host.
type HostCost struct {
	PerHour  string `json:"per_hour,omitempty"` // decimal and currency: "0.40 USD"
	CPU      int64  `json:"cpu,omitempty"`
	MemoryMB int64  `json:"memory_mb,omitempty"`
	GPU      int64  `json:"gpu,omitempty"` // 0 = none, or not priced apart
	DiskMB   int64  `json:"disk_mb,omitempty"`
	// Idle says who bears the idle cost, one of the Idle… sharings; "" = IdleNone.
	Idle string `json:"idle,omitempty"`
}

// Who bears the idle cost of a host.
const (
	IdleNone      = "none"      // nobody: it is reported apart
	IdleShared    = "shared"    // those who run there, by what each is allocated
	IdleDedicated = "dedicated" // who runs there has the whole host
)

// IdleSharings lists every sharing.
var IdleSharings = []string{IdleNone, IdleShared, IdleDedicated}

// HostFacts describe a probed host for people. The state has no volatile facts. They
// decide nothing: a binding's Facts hold what it can use there.
type HostFacts struct {
	OS        string           `json:"os"`
	Arch      string           `json:"arch"` // as Go names it: amd64, arm64
	CPUs      int64            `json:"cpus"`
	MemoryMB  int64            `json:"memory_mb"`
	Docker    string           `json:"docker,omitempty"` // version, empty when absent
	Compose   string           `json:"compose,omitempty"`
	KVM       bool             `json:"kvm"`
	GPU       bool             `json:"gpu"`
	Isolation []Isolation      `json:"isolation,omitempty"`  // levels proved here
	Egress    Egress           `json:"egress,omitempty"`     // what can be enforced here; "" = not known
	Expiry    Expiry           `json:"expiry,omitempty"`     // who ends sandboxes here; "" = not known
	SecretsAs []SecretDelivery `json:"secrets_as,omitempty"` // how secrets can be given here; nil = not known
	Notes     []string         `json:"notes,omitempty"`      // what holds, and what is missing and how to get it
	Unfit     []string         `json:"unfit,omitempty"`      // those of Notes without which nothing can run here
	FreeDisk  int64            `json:"-"`                    // MiB, volatile
	ClockSkew time.Duration    `json:"-"`                    // host minus us, volatile
}
