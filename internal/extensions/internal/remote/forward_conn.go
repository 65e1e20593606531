package remote

import (
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

func newForwarded(ch ssh.Channel, network, addr string, release func()) *forwarded {
	f := &forwarded{ch: ch, remote: address{network, addr}, release: sync.OnceFunc(release),
		pieces: make(chan []byte), closed: make(chan struct{})}
	f.read.init()
	f.write.init()
	go f.readAhead()
	return f
}

// readAhead reads one piece ahead of Read, so that Read can have a deadline.
func (f *forwarded) readAhead() {
	defer close(f.pieces)
	for {
		buf := make([]byte, chunk)
		n, err := f.ch.Read(buf)
		if n > 0 {
			select {
			case f.pieces <- buf[:n]:
			case <-f.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Read implements net.Conn.
func (f *forwarded) Read(p []byte) (int, error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if len(f.rest) == 0 && len(p) > 0 {
		select {
		case <-f.closed:
			return 0, net.ErrClosed
		case <-f.read.passed():
			return 0, os.ErrDeadlineExceeded
		default:
		}
		select {
		case piece, ok := <-f.pieces:
			if !ok {
				return 0, io.EOF
			}
			f.rest = piece
		case <-f.closed:
			return 0, net.ErrClosed
		case <-f.read.passed():
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Write implements net.Conn. Once a deadline has passed, nobody knows how much was sent, so Write closes the
// connection.
func (f *forwarded) Write(p []byte) (int, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	select {
	case <-f.closed:
		return 0, net.ErrClosed
	case <-f.write.passed():
		return 0, os.ErrDeadlineExceeded
	default:
	}
	type result struct {
		n   int
		err error
	}
	own := append([]byte(nil), p...) // it may be written after we return
	done := make(chan result, 1)
	go func() {
		n, err := f.ch.Write(own)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-f.closed:
		return 0, net.ErrClosed
	case <-f.write.passed():
		_ = f.Close()
		return 0, os.ErrDeadlineExceeded
	}
}

// CloseWrite tells the far end that no more data follows.
func (f *forwarded) CloseWrite() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.ch.CloseWrite()
}

// Close implements net.Conn.
func (f *forwarded) Close() error {
	f.closeOnce.Do(func() {
		close(f.closed)
		_ = f.ch.Close()
		f.read.set(time.Time{})
		f.write.set(time.Time{})
		f.release()
	})
	return nil
}

// LocalAddr implements net.Conn; the near end has no address of its own.
func (f *forwarded) LocalAddr() net.Addr { return address{f.remote.network, "ssh"} }

// RemoteAddr implements net.Conn with the address as the caller named it.
func (f *forwarded) RemoteAddr() net.Addr { return f.remote }

// SetDeadline implements net.Conn.
func (f *forwarded) SetDeadline(t time.Time) error {
	f.read.set(t)
	f.write.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (f *forwarded) SetReadDeadline(t time.Time) error {
	f.read.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (f *forwarded) SetWriteDeadline(t time.Time) error {
	f.write.set(t)
	return nil
}

// deadline is a time that can move while somebody waits for it.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{} // closed at the deadline
}

func (d *deadline) init() { d.over = make(chan struct{}) }

// passed returns a channel that closes at the deadline.
func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// set moves the deadline; zero means never. Current waiters wait for the new time, unless the old one had
// passed.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.over // the timer has fired: let it finish
	}
	d.timer = nil
	select {
	case <-d.over:
		d.over = make(chan struct{})
	default:
	}
	if t.IsZero() {
		return
	}
	over := d.over
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(over) })
		return
	}
	close(over)
}
