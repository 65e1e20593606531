//go:build race

package engine_test

// raced: the detector makes the database ten times slower, and finds what it
// finds in a fraction of the rounds. Without it all of them are run.
const raced = true
