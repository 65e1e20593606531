package exttest

import "testing"

// Alone skips, under the race detector, what one goroutine or one killed process after the other does for long, and what
// does once more, with other declarations, what is watched already: the detector takes several times as long over it and
// finds nothing. `make test` runs it without; its ALONE names it. -short skips it, too.
func Alone(t testing.TB) {
	t.Helper()
	switch {
	case testing.Short():
		t.Skip("-short: it takes seconds")
	case Detector:
		t.Skip("it has no race of its own: `make test` runs it without the race detector")
	}
}
