package remote

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// settleLogin says which keys may be offered: only those the arguments name, if any; else ssh_config's; else
// ssh's defaults.
func (c *sshConfig) settleLogin(s extensions.SSH, h *hop) error {
	if id := s.Identity; id != nil && (id.PrivateKeyFile != "" || id.CertificateFile != "" || id.Agent || len(id.Command) > 0) {
		return c.namedLogin(*id, h)
	}
	plan := loginPlan{agent: c.options.Getenv("SSH_AUTH_SOCK")}
	if v := c.values["identityagent"]; v != nil {
		socket, err := c.agentSocket(v[0], *h)
		if err != nil {
			return err
		}
		plan.agent = socket
	}
	if v := c.values["identitiesonly"]; v != nil {
		plan.only = strings.EqualFold(v[0], "yes")
	}
	ids := c.ids
	if len(ids) == 0 {
		ids = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
	}
	files, err := c.files(ids, *h)
	if err != nil {
		return err
	}
	for _, f := range files {
		plan.files = append(plan.files, identityFile{path: f})
	}
	certs, err := c.files(c.certs, *h)
	if err != nil {
		return err
	}
	for _, f := range certs {
		plan.certs = append(plan.certs, identityFile{path: f})
	}
	h.login = plan
	return nil
}

func (c *sshConfig) namedLogin(id extensions.SSHIdentity, h *hop) error {
	plan := loginPlan{only: true, agentNamed: id.Agent}
	if len(id.Command) > 0 {
		if id.PrivateKeyFile != "" || id.CertificateFile != "" || id.Agent {
			return extensions.Errorf(extensions.KindInvalid, "the identity for %s is a command and something else", h.label).
				WithRemedy("keep `command` or the others").At("ssh.identity")
		}
		plan.command = append([]string{c.path(id.Command[0])}, id.Command[1:]...)
		h.login = plan
		return nil
	}
	if id.Agent {
		plan.agent = c.options.Getenv("SSH_AUTH_SOCK")
		if v := c.values["identityagent"]; v != nil {
			socket, err := c.agentSocket(v[0], *h)
			if err != nil {
				return err
			}
			plan.agent = socket
		}
		plan.only = id.PrivateKeyFile != "" || id.CertificateFile != ""
	}
	if id.CertificateFile != "" {
		plan.certs = []identityFile{{path: c.path(id.CertificateFile), named: true}}
	}
	switch {
	case id.PrivateKeyFile != "":
		plan.files = []identityFile{{path: c.path(id.PrivateKeyFile), named: true}}
	case id.CertificateFile != "" && !id.Agent:
		key, ok := strings.CutSuffix(c.path(id.CertificateFile), "-cert.pub")
		if _, err := os.Stat(key); !ok || errors.Is(err, fs.ErrNotExist) {
			return extensions.Errorf(extensions.KindInvalid, "the certificate %s has no private key", id.CertificateFile).
				WithRemedy("set private_key_file, or `agent = true` if the agent has the key").At("ssh.identity.certificate_file")
		}
		plan.files = []identityFile{{path: key, named: true}}
	}
	h.login = plan
	return nil
}

// agentSocket reads IdentityAgent: none, a variable's name, or a path.
func (c *sshConfig) agentSocket(value string, h hop) (string, error) {
	switch {
	case strings.EqualFold(value, "none"):
		return "", nil
	case value == "SSH_AUTH_SOCK":
		return c.options.Getenv(value), nil
	case strings.HasPrefix(value, "$") && !strings.HasPrefix(value, "${"):
		return c.options.Getenv(value[1:]), nil
	}
	files, err := c.files([]string{value}, h)
	if err != nil || len(files) == 0 {
		return "", err
	}
	return files[0], nil
}
