package vendor_test

import "io"

// pipe is a standard input that never ends by itself.
func pipe() (io.Reader, io.Closer) {
	r, w := io.Pipe()
	return r, w
}
