//go:build unix

package stage

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// rawReader reads a descriptor without an os.File, which would close it when collected.
type rawReader int

func (r rawReader) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(r), p)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Failure is what a stage reports instead of "ready".
type Failure struct {
	Step  string `json:"step"`
	Errno int    `json:"errno"`
	Text  string `json:"text"`
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %s", f.Step, f.Text) }

// Unwrap returns the system's error number, so that errors.Is works across the pipe.
func (f *Failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return syscall.Errno(f.Errno)
}
