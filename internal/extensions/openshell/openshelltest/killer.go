package openshelltest

import (
	"os/exec"
	"sync"
	"testing"
)

// Killer is a way to the gateway that kills a process at its nth call: before the gateway has that, or when the gateway has
// done it and nobody was told.
type Killer struct {
	URL string

	mu     sync.Mutex
	at     int64
	after  bool
	seen   int64
	victim *exec.Cmd // nil = it cuts whoever calls off
	dead   bool
}

// Killer returns one that kills nobody until Start.
func (g *Gateway) Killer(t testing.TB) *Killer {
	t.Helper()
	k := &Killer{}
	f := g.newFront(t, k)
	k.URL = f.url
	t.Cleanup(f.stop)
	return k
}

func (k *Killer) strikes() (before, after bool) {
	if k == nil {
		return false, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	hit := k.seen == k.at
	if k.dead {
		return true, false
	}
	return hit && !k.after, hit && k.after
}

func (k *Killer) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.victim == nil {
		k.dead = true
		return
	}
	_ = k.victim.Process.Kill()
}

// Cut lets nothing more through from the nth call on, as if its caller were dead. after lets the gateway do that one.
func (k *Killer) Cut(n int64, after bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.after = n, after
}

// Start starts a process and kills it at its nth call; 0 = never. after lets the gateway do that one first.
func (k *Killer) Start(cmd *exec.Cmd, n int64, after bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.after, k.seen, k.victim = n, after, 0, cmd
	return cmd.Start()
}

// Wait waits for the process, and kills nobody from then on. Its error is that of the process.
func (k *Killer) Wait() error {
	err := k.victim.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at = 0
	return err
}

// Seen counts the calls since Start.
func (k *Killer) Seen() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen
}
