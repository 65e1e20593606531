//go:build linux && !race

package local

const raceScale = 1
