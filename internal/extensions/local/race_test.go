//go:build linux && race

package local

// raceScale makes room for what the race detector maps in the attacker.
const raceScale = 8
