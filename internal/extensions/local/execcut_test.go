//go:build linux

package local

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// cutExec stands between a backend and an init for one call, and hangs up on both once started is closed.
func cutExec(t testing.TB, cfg extensions.Config, h extensions.Handle, started <-chan struct{}) {
	bx := settings{root: filepath.Join(cfg.StateDir, "local")}.box(h.ID)
	at := filepath.Join(bx.dir, socketName)
	must(t, os.Rename(at, at+".real"))
	file, err := listenSocket(bx)
	must(t, err)
	between, err := net.FileListener(file)
	must(t, err)
	must(t, file.Close())
	restore := sync.OnceFunc(func() {
		_ = between.Close()
		must(t, os.Rename(at+".real", at))
	})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		restore()
		wg.Wait()
	})
	wg.Go(func() {
		caller, err := between.Accept()
		if err != nil {
			return
		}
		init, err := dialAt(bx.dir, socketName+".real")
		if err != nil {
			_ = caller.Close()
			return
		}
		wg.Go(func() { _, _ = io.Copy(init, caller) })
		wg.Go(func() { _, _ = io.Copy(caller, init) })
		select {
		case <-started:
			restore()
		case <-stop:
		}
		_, _ = caller.Close(), init.Close()
	})
}

// dialAt connects to a socket in a folder whose path may be too long for an address.
func dialAt(dir, name string) (net.Conn, error) {
	link, err := os.MkdirTemp("", "s")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(link) }()
	if err := os.Symlink(dir, filepath.Join(link, "d")); err != nil {
		return nil, err
	}
	return net.Dial("unix", filepath.Join(link, "d", name))
}
