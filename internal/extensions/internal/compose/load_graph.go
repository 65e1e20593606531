package compose

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"
)

// dependencies refuses stacks whose services wait for one another, and those with more paths through their
// dependencies than anybody needs: the library, and Compose on the host, walk every one.
func (l *loading) dependencies(p *types.Project) error {
	const open = -1
	paths := map[string]int{}
	var visit func(name string) error
	visit = func(name string) error {
		if paths[name] == open {
			return l.stop("consistency", "services."+name+".depends_on", errors.New("it waits for itself"))
		}
		if paths[name] > 0 {
			return nil
		}
		paths[name] = open
		total := 1
		for _, next := range slices.Sorted(maps.Keys(p.Services[name].DependsOn)) {
			if err := visit(next); err != nil {
				return err
			}
			if total += paths[next]; total > maxPaths {
				return l.stop("too-large", "services."+name+".depends_on", fmt.Errorf("there are more than %d ways through it", maxPaths))
			}
		}
		paths[name] = total
		return nil
	}
	all := 0
	for _, name := range slices.Sorted(maps.Keys(p.Services)) {
		if err := visit(name); err != nil {
			return err
		}
		if all += paths[name]; all > maxPaths {
			return l.stop("too-large", "services", fmt.Errorf("there are more than %d ways through their dependencies", maxPaths))
		}
	}
	return nil
}
