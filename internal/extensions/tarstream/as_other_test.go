//go:build !linux

package tarstream

import "testing"

func as(t *testing.T, f func()) {
	t.Helper()
	f()
}
