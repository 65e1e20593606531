//go:build !unix

// Package initd has no init on this system.
package initd
