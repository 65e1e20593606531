// Package spool keeps a stream whose size must be known before it is sent.
package spool

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Short is how much of a stream stays in memory, in bytes.
const Short = 1 << 20

// Spool is written first, and read then. What is not short lies on this machine's disk, in a file that has no name wherever
// the system allows that, so that nothing is left of it if the process is killed. The zero value is empty.
type Spool struct {
	Size  int64 // in bytes
	short bytes.Buffer
	long  *os.File
}

// Write implements io.Writer.
func (s *Spool) Write(p []byte) (n int, err error) {
	if s.long == nil && s.Size+int64(len(p)) > Short {
		if s.long, err = os.CreateTemp("", "sandboxer-spool-*"); err != nil {
			return 0, err
		}
		_ = os.Remove(s.long.Name()) // where it cannot be now, Close removes it
		if _, err = s.short.WriteTo(s.long); err != nil {
			return 0, err
		}
	}
	if s.long != nil {
		n, err = s.long.Write(p)
	} else {
		n, err = s.short.Write(p)
	}
	s.Size += int64(n)
	return n, err
}

// Reader reads what was written, from the beginning, once.
func (s *Spool) Reader() (io.Reader, error) {
	if s.long == nil {
		return &s.short, nil
	}
	_, err := s.long.Seek(0, io.SeekStart)
	return s.long, err
}

// Close frees what it keeps.
func (s *Spool) Close() error {
	if s.long == nil {
		return nil
	}
	err := s.long.Close()
	if gone := os.Remove(s.long.Name()); !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}
