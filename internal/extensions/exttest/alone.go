package exttest

import "testing"

// Alone skips, under the race detector, what one goroutine or one killed process after the other does for long, and what
// does once more, with other declarations, what is watched already: the detector takes several times as long over it and
// finds nothing. -short skips it, too.
func Alone(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	Undetected(t, "it has no race of its own")
}

// Undetected skips under the race detector, and says why. `make test` knows it by its words and runs it once more without.
func Undetected(t testing.TB, why string) {
	t.Helper()
	if Detector {
		t.Skip("left to the run without the race detector: " + why)
	}
}
