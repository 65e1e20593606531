// Package route chooses the place of a sandbox and explains every refusal. It is pure: no I/O, no clock, no randomness;
// what a create finds out arrives as arguments.
//
// Stages run in order: intent, permission, viability, preference, ranking, bind. A stage may only remove (with a refusal)
// or reorder (a permutation). The answer does not depend on the order of candidates.
package route
