package life

import (
	"context"
	"io"
	"sync"
)

// Serve connects each client that accept returns to the port inside, until ctx ends. Then it calls stop, which
// makes accept fail, ends every connection and returns nil. It returns an earlier error of accept. It calls
// failed for each client that it could not connect.
func (d Dialer) Serve(ctx context.Context, accept func() (io.ReadWriteCloser, error), stop func(),
	failed func(client io.ReadWriteCloser, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, stop)()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel() // before the wait
	for {
		client, err := accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil // the user stopped forwarding
		default:
			return err
		}
		wg.Go(func() {
			if err := d.carry(ctx, client); err != nil && ctx.Err() == nil {
				failed(client, err)
			}
		})
	}
}

// carry connects one client. It passes on each side's end of writing, so that a client that closes its half
// still gets its answer.
func (d Dialer) carry(ctx context.Context, client io.ReadWriteCloser) error {
	defer client.Close()
	inside, err := d(ctx)
	if err != nil {
		return err
	}
	defer inside.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = inside.Close()
	})
	defer stop()
	var wg sync.WaitGroup
	for _, way := range [][2]io.ReadWriteCloser{{inside, client}, {client, inside}} {
		wg.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			} else {
				_ = way[0].Close()
			}
		})
	}
	wg.Wait()
	return nil
}
