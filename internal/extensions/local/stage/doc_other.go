//go:build !unix

// Package stage has no stages on this system.
package stage
