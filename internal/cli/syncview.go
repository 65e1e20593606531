package cli

import (
	"fmt"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (v syncView) print(w io.Writer) error {
	if len(v.Changed)+len(v.Conflicts) == 0 {
		return printLine(w, "Nothing changed.")
	}
	var lines [][2]string
	for _, name := range v.Changed {
		lines = append(lines, [2]string{"brought back", name})
	}
	for _, why := range v.Conflicts {
		lines = append(lines, [2]string{"left alone", why})
	}
	return facts(w, lines)
}

func (v syncView) err(folder string) error {
	n := int64(len(v.Conflicts))
	if n == 0 {
		return nil
	}
	return extensions.Errorf(extensions.KindConflict, "sandbox %s: %s left alone in %s", v.ID, count(n, "file was", "files were"),
		extensions.Clean(folder, maxCell)).
		WithRemedy("%s", fmt.Sprintf("copy them by hand, as in `sandboxer sandbox cp %s:FILE FILE`", v.ID))
}
