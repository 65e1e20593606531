// Package bench measures sandboxes on a real host against the same stack without sandboxer. It contains only
// benchmarks:
//
//	make bench PKG=./internal/bench
package bench
