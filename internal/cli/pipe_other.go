//go:build !unix

package cli

// exitClosed is what a Unix shell would report.
const exitClosed = 141

// catchBrokenPipes does nothing: here, a write that nobody reads is an error anyway.
func catchBrokenPipes() (back func()) { return func() {} }
