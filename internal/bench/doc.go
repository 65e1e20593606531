// Package bench measures sandboxes on a real host beside what the same stack
// costs without sandboxer. It has no code of its own but its benchmarks:
//
//	make bench PKG=./internal/bench
package bench
