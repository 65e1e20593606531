//go:build unix

package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A pipe that nobody reads is waited for until the command is interrupted.
func TestAPipeNobodyReadsIsWaitedForUntilInterrupted(t *testing.T) {
	t.Parallel()
	name := fifo(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- new(app).exportTo(ctx, name, func(io.Writer) error { return errors.New("it was written to") })
	}()
	cancel()
	if err := <-done; !extensions.IsKind(err, extensions.KindInterrupted) || !strings.Contains(err.Error(), name) ||
		extensions.RemedyOf(err) == "" {
		t.Errorf("%v", err)
	}
	// Whoever reads now frees what still waits to write, and reads nothing.
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// So is one whose reader reads no more.
func TestAPipeThatIsFullIsWaitedForUntilInterrupted(t *testing.T) {
	t.Parallel()
	name := fifo(t)
	r, err := os.OpenFile(name, os.O_RDWR, 0) // as a reader that does not read
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = new(app).exportTo(ctx, name, func(w io.Writer) error {
		page := make([]byte, 1<<16)
		for n := 0; ; n++ {
			if n == 1 { // 64 KiB is what a pipe holds
				cancel()
			}
			if _, err := w.Write(page); err != nil {
				return err
			}
		}
	})
	if !extensions.IsKind(err, extensions.KindInterrupted) {
		t.Errorf("%v", err)
	}
}

func TestAPipeIsWrittenTo(t *testing.T) {
	t.Parallel()
	name := fifo(t)
	read := make(chan string)
	go func() {
		b, _ := os.ReadFile(name)
		read <- string(b)
	}()
	err := new(app).exportTo(t.Context(), name, func(w io.Writer) error {
		_, err := io.WriteString(w, "all")
		return err
	})
	if got := <-read; err != nil || got != "all" {
		t.Errorf("%q, %v", got, err)
	}
}
