//go:build race

package ledgertest

// detector: the race detector is on.
const detector = true
