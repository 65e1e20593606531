package strictyaml_test

import (
	"errors"
	"fmt"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
)

// forms is a word or a mapping.
type forms struct{ Word string }

func (f *forms) UnmarshalStrict(n strictyaml.Node) error {
	switch n.Kind() {
	case strictyaml.Text:
		f.Word = n.Literal()
		return nil
	case strictyaml.Mapping:
		var m struct {
			Word string `yaml:"word"`
		}
		if n.Decode(&m) {
			f.Word = m.Word
		}
		return nil
	}
	return fmt.Errorf("want a word or a mapping, got %s", n)
}

// stamp is an encoding.TextUnmarshaler.
type stamp string

func (s *stamp) UnmarshalText(b []byte) error {
	if string(b) == "never" {
		return errors.New("never is not a time")
	}
	*s = stamp(b)
	return nil
}
