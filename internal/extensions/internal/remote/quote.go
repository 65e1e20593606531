package remote

import (
	"maps"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// assignments sets vars as shell variables, in order of name.
func assignments(vars map[string]string) (string, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if !validName(name) {
			return "", extensions.Errorf(extensions.KindInternal, "%q is not a name for a shell variable", name)
		}
		if strings.ContainsRune(vars[name], 0) { // the value may be a secret: do not show it
			return "", extensions.Errorf(extensions.KindInvalid, "the value of %s contains a NUL byte, which no shell variable can hold", name)
		}
		b.WriteString(name + "=" + shtext.Quote(vars[name]) + "\n")
	}
	return b.String(), nil
}

func validName(name string) bool {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && !strings.HasPrefix(name, "_sbx")
}
