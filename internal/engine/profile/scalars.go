package profile

import (
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Strings is a list that may be written as a single word.
type Strings []string

// UnmarshalStrict implements strictyaml.Unmarshaler.
func (s *Strings) UnmarshalStrict(n strictyaml.Node) error {
	if n.Kind() == strictyaml.Text {
		*s = make(Strings, 1)
		n.Decode(&(*s)[0])
		return nil
	}
	list := []string(nil)
	n.Decode(&list)
	*s = list
	return nil
}

// CPU is a number of vCPUs in thousandths, written 2, 0.5 or "0.5".
type CPU extensions.Milli

const (
	maxCPU       = 1024
	mostMemoryMB = 1 << 24
	mostDiskMB   = 1 << 30
	mostPids     = 1 << 22
)

// UnmarshalStrict implements strictyaml.Unmarshaler.
func (c *CPU) UnmarshalStrict(n strictyaml.Node) error {
	if k := n.Kind(); k != strictyaml.Number && k != strictyaml.Text {
		return invalid("want a number of vCPUs such as 2 or 0.5, got %s", n)
	}
	milli, err := parseCPU(n.Literal())
	*c = CPU(milli)
	return err
}

func parseCPU(s string) (extensions.Milli, error) {
	whole, frac, _ := strings.Cut(s, ".")
	if strings.HasPrefix(s, "-") {
		return 0, invalid("%s vCPUs: the number must be positive", extensions.Clean(s, 40))
	}
	if whole == "" || len(frac) > 3 || strings.Trim(whole+frac, "0123456789") != "" || strings.HasSuffix(s, ".") {
		return 0, invalid("%s is not a number of vCPUs with at most three decimals", quoted(s))
	}
	n, err := strconv.ParseInt(whole+(frac + "000")[:3], 10, 64)
	switch {
	case err != nil || n > maxCPU*1000:
		return 0, invalid("%s vCPUs: at most %d are accepted", extensions.Clean(s, 40), maxCPU)
	case n == 0:
		return 0, invalid("%s vCPUs: the number must be positive; null means no limit", s)
	}
	return extensions.Milli(n), nil
}

// MarshalText implements encoding.TextMarshaler.
func (c CPU) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(c), 10), nil }

// Entrypoint is idle, image, or the words of a command.
type Entrypoint extensions.Entrypoint

// UnmarshalStrict implements strictyaml.Unmarshaler.
func (e *Entrypoint) UnmarshalStrict(n strictyaml.Node) error {
	if n.Kind() != strictyaml.Text {
		if !n.Decode(&e.Argv) {
			return nil
		}
		e.Mode = extensions.EntrypointArgv
		return checkArgv(e.Argv)
	}
	var word string
	n.Decode(&word)
	switch e.Mode = extensions.EntrypointMode(word); e.Mode {
	case extensions.EntrypointIdle, extensions.EntrypointImage:
		return nil
	}
	return invalid("%s is not an entrypoint: want idle, image, or the words of a command as a list, as in [agent, run]", quoted(word))
}

// GPU requests accelerators: a count, a model, or {model, count}.
type GPU struct {
	Model string
	Count int64
}

// UnmarshalStrict implements strictyaml.Unmarshaler.
func (g *GPU) UnmarshalStrict(n strictyaml.Node) error {
	g.Count = 1
	var ok bool
	switch n.Kind() {
	case strictyaml.Number:
		ok = n.Decode(&g.Count)
	case strictyaml.Text:
		ok = n.Decode(&g.Model)
	default:
		var m struct {
			Model *string `yaml:"model"`
			Count *int64  `yaml:"count"`
		}
		ok = n.Decode(&m)
		if m.Model != nil {
			g.Model = *m.Model
		}
		if m.Count != nil {
			g.Count = *m.Count
		}
	}
	if !ok {
		return nil
	}
	return g.check()
}

func (g GPU) check() error {
	switch {
	case g.Count < 1 || g.Count > 64:
		return invalid("gpu: %d is not a count between 1 and 64; null means none", g.Count)
	case g.Model != "" && !word(g.Model, "._ -"):
		return invalid("gpu: %s is not a model name", quoted(g.Model))
	}
	return nil
}
