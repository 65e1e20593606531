package catalog

import (
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// tunnelFile is one file of tunnels/: a jump host.
type tunnelFile struct {
	ID         string  `yaml:"id"`
	Address    string  `yaml:"address"`
	Alias      string  `yaml:"alias"`
	Port       int64   `yaml:"port"`
	User       string  `yaml:"user"`
	HostKey    string  `yaml:"host_key"`
	KnownHosts string  `yaml:"known_hosts"`
	HostCA     string  `yaml:"host_ca"`
	Identity   *string `yaml:"identity"` // name of an identity
}

// identityFile is one file of identities/: a login.
type identityFile struct {
	ID              string   `yaml:"id"`
	PrivateKeyFile  string   `yaml:"private_key_file"`
	CertificateFile string   `yaml:"certificate_file"`
	Agent           bool     `yaml:"agent"`
	Command         []string `yaml:"command"`
}

// tunnel is a jump host whose identity is still a name.
type tunnel struct {
	ssh      extensions.SSH
	identity string // "" = none named
	at       *strictyaml.Error
}

// Tunnel finds a jump host by name. An unknown one is KindInvalid with the nearest names.
func (c *Catalog) Tunnel(name string) (extensions.SSH, error) {
	s, ok := c.Tunnels[name]
	if !ok {
		return s, unknownName("tunnel", tunnelsFolder, name, slices.Sorted(maps.Keys(c.Tunnels)))
	}
	return s, nil
}

// Identity finds a login by name. An unknown one is KindInvalid with the nearest names.
func (c *Catalog) Identity(name string) (extensions.SSHIdentity, error) {
	id, ok := c.Identities[name]
	if !ok {
		return id, unknownName("identity", identitiesFolder, name, slices.Sorted(maps.Keys(c.Identities)))
	}
	return id, nil
}

func unknownName(what, folder, name string, known []string) error {
	err := extensions.Errorf(extensions.KindInvalid, "the catalog has no %s %q", what, extensions.Clean(name, 80))
	if near := strictyaml.NearestN(name, known, 1); len(near) > 0 {
		return err.WithRemedy("did you mean %s? Otherwise add %s/%s.yaml to a catalog folder", near[0], folder, extensions.Clean(name, 80))
	}
	return err.WithRemedy("add %s/%s.yaml to a catalog folder", folder, extensions.Clean(name, 80))
}

func (ld *loader) addTunnel(f file) {
	var in tunnelFile
	pos, err := strictyaml.DecodePositions(f.name, f.data, &in)
	errs := strictyaml.Collect(f.name, err)
	t := tunnel{ssh: extensions.SSH{Address: in.Address, Alias: in.Alias, Port: in.Port, User: in.User,
		HostKey: in.HostKey, KnownHosts: in.KnownHosts, HostCA: in.HostCA}}
	if pos.Known() {
		errs = append(errs, checkReachID(pos, in.ID)...)
		if err := t.ssh.Check("tunnel"); err != nil {
			errs = append(errs, pos.Errorf(nil, "%s", strictyaml.Message(err)))
		}
		for key, v := range map[string]string{"host_key": in.HostKey, "known_hosts": in.KnownHosts, "host_ca": in.HostCA} {
			errs = append(errs, checkLine(pos, v, key)...)
		}
		if in.Identity != nil {
			t.identity, t.at = *in.Identity, pos.Errorf([]string{"identity"}, "")
		}
	}
	addReach(ld, ld.tunnels, tunnelsFolder, in.ID, f, pos, t, errs)
}

func (ld *loader) addIdentity(f file) {
	var in identityFile
	pos, err := strictyaml.DecodePositions(f.name, f.data, &in)
	errs := strictyaml.Collect(f.name, err)
	id := extensions.SSHIdentity{PrivateKeyFile: in.PrivateKeyFile, CertificateFile: in.CertificateFile, Agent: in.Agent, Command: in.Command}
	if pos.Known() {
		errs = append(errs, checkReachID(pos, in.ID)...)
		errs = append(errs, checkLine(pos, in.PrivateKeyFile, "private_key_file")...)
		errs = append(errs, checkLine(pos, in.CertificateFile, "certificate_file")...)
		for _, arg := range in.Command {
			errs = append(errs, checkLine(pos, arg, "command")...)
		}
		switch {
		case in.Command != nil && (len(in.Command) == 0 || in.Command[0] == ""):
			errs = append(errs, pos.Errorf([]string{"command"}, "the command is empty"))
		case in.PrivateKeyFile == "" && in.Command == nil && !in.Agent:
			errs = append(errs, pos.Errorf(nil, "an identity needs command, private_key_file or agent: true"))
		}
	}
	addReach(ld, ld.identities, identitiesFolder, in.ID, f, pos, id, errs)
}

func checkReachID(pos *strictyaml.Positions, id string) strictyaml.Errors {
	if id == "" && !pos.Has("id") {
		return strictyaml.Errors{pos.Errorf(nil, "id is required, as in id: ops")}
	}
	if err := profile.CheckName(id); err != nil {
		return strictyaml.Errors{pos.Errorf([]string{"id"}, "%s", strictyaml.Message(err))}
	}
	return nil
}

func checkLine(pos *strictyaml.Positions, v, key string) strictyaml.Errors {
	if strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return strictyaml.Errors{pos.Errorf([]string{key}, "line breaks and other control characters are not accepted")}
	}
	return nil
}

func addReach[T any](ld *loader, to map[string]entry[T], folder, id string, f file, pos *strictyaml.Positions, value T,
	errs strictyaml.Errors) {
	if len(errs) > 0 {
		ld.errs = append(ld.errs, errs...)
		ld.broken[folder+"/"+id] = true
		return
	}
	if was, ok := to[id]; ok && !overrides(ld, was, pos.Errorf([]string{"id"}, ""), id) {
		return
	}
	to[id] = entry[T]{value: value, file: f.name, layer: ld.layer}
}

// checkTunnels gives each tunnel the identity that it names.
func (ld *loader) checkTunnels() {
	for _, name := range slices.Sorted(maps.Keys(ld.tunnels)) {
		e := ld.tunnels[name]
		if e.value.identity == "" {
			continue
		}
		id, ok := ld.identities[e.value.identity]
		if !ok {
			ld.missing(e.value.at, "identity", identitiesFolder, e.value.identity, slices.Sorted(maps.Keys(ld.identities)))
			continue
		}
		e.value.ssh.Identity = &id.value
		ld.tunnels[name] = e
	}
}

// checkReach reports tunnels and identities that a profile names but the catalog lacks. Only validation
// asks; a plan refuses that profile alone.
func (ld *loader) checkReach(p *profile.Profile) {
	r := p.Reachability
	if r == nil {
		return
	}
	if t := r.Tunnel; t != nil && !has(ld.tunnels, *t) {
		ld.missing(p.Errorf([]string{"reachability", "tunnel"}, ""), "tunnel", tunnelsFolder, *t, slices.Sorted(maps.Keys(ld.tunnels)))
	}
	if id := r.Identity; id != nil && !has(ld.identities, *id) {
		ld.missing(p.Errorf([]string{"reachability", "identity"}, ""), "identity", identitiesFolder, *id, slices.Sorted(maps.Keys(ld.identities)))
	}
}

func has[T any](in map[string]entry[T], name string) bool {
	_, ok := in[name]
	return ok
}

func (ld *loader) missing(at *strictyaml.Error, what, folder, name string, known []string) {
	if ld.broken[folder+"/"+name] {
		return
	}
	at.Msg = "there is no " + what + " " + extensions.Clean(name, 80) + ": add a file with this ID to " + folder + "/ of a catalog folder"
	at.Suggestion = strictyaml.Nearest(name, known)
	ld.errs = append(ld.errs, at)
}
