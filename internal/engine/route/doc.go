// Package route chooses the place a sandbox runs in and says why, for the
// places it did not choose as well. It is pure: no I/O, no clock, no
// randomness; what apply finds out arrives as arguments.
//
// Stages run in order: intent, permission, viability, preference, ranking,
// bind. A stage may only remove (with a refusal), or reorder (a permutation).
// The answer does not depend on the order candidates arrive in.
package route
