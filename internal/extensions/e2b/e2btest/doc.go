// Package e2btest is a fake of the vendor E2B, for tests: its control plane and the daemon inside each sandbox,
// over HTTP on loopback. Every request and every answer is validated against the vendor's own description; one
// that does not conform fails the test, whoever sent it.
//
// A sandbox is a folder that its processes have as their root, with the programs of a static busybox. Where the
// vendor's description leaves a behavior open, the fake does what the vendor's published server does
// (e2b-dev/infra), and of two behaviors the less comfortable one.
//
// What it cannot show: the walls between a sandbox and the world (network rules are only kept and told), memory
// in a snapshot (only files are copied), quotas and bills as they are.
package e2btest
