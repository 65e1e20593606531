//go:build race

package exttest

// Detector reports whether the race detector is on.
const Detector = true
