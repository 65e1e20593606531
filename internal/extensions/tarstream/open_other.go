//go:build !unix

package tarstream

import "path/filepath"

const nonblock = 0

func nameable(name string) bool {
	_, err := filepath.Localize(name)
	return err == nil
}
