package remote

import (
	"os"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// files expands paths in ssh_config: ~, ${VARIABLE} and % tokens. As in ssh, a relative path starts at the
// working directory, and none means no file.
func (c *sshConfig) files(paths []string, h hop) ([]string, error) {
	var out []string
	for _, path := range paths {
		if strings.EqualFold(path, "none") {
			continue
		}
		path, err := c.variables(path)
		if err != nil {
			return nil, err
		}
		if path, err = c.tokens(path, h, "%d%h%i%k%L%l%n%p%r%u"); err != nil {
			return nil, err
		}
		out = append(out, c.path(path))
	}
	return out, nil
}

func (c *sshConfig) variables(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		value := c.options.Getenv(name)
		if !closed || value == "" {
			return "", c.token("${"+name+"}", "is not set")
		}
		out.WriteString(value)
		text = after
	}
}

// tokens expands the % tokens allowed in this place.
func (c *sshConfig) tokens(text string, h hop, allowed string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			out.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", c.token("%", "is not complete; write %% for the character")
		}
		if text[i] != '%' && !strings.Contains(allowed, "%"+text[i:i+1]) {
			return "", c.token("%"+text[i:i+1], "is not supported here")
		}
		out.WriteString(c.tokenValue(text[i], h))
	}
	return out.String(), nil
}

func (c *sshConfig) tokenValue(token byte, h hop) string {
	switch token {
	case 'd':
		return c.home
	case 'h':
		return h.host
	case 'i':
		return strconv.Itoa(os.Getuid())
	case 'k':
		if h.rules.host != "" {
			return h.rules.host
		}
		return h.host
	case 'l', 'L':
		name, err := os.Hostname()
		if err != nil {
			return "localhost"
		}
		if token == 'L' {
			name, _, _ = strings.Cut(name, ".")
		}
		return name
	case 'n':
		return c.name
	case 'p':
		return strconv.Itoa(h.port)
	case 'r':
		return h.user
	case 'u':
		return c.userEnv.user
	}
	return "%"
}

func (c *sshConfig) token(token, why string) error {
	return extensions.Errorf(extensions.KindInvalid, "%s in the ssh_config entry for %s %s", extensions.Clean(token, 60), c.name, why).
		WithRemedy("write the value itself, or set it in the host's ssh block")
}
