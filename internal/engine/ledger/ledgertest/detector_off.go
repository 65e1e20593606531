//go:build !race

package ledgertest

// detector reports whether the race detector is on.
const detector = false
