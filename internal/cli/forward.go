package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (a *app) sandboxForwardCommand() *cobra.Command {
	var service string
	c := &cobra.Command{
		Use:   "forward ID|NAME [LOCAL:]PORT",
		Short: "Make a port inside reachable on this machine's loopback, until interrupted",
		Long: `Listens on 127.0.0.1 and carries every connection to a port inside the sandbox,
also where its network is shut. Without LOCAL a free port is chosen; the address
is printed once it is open. Ends with Ctrl-C.`,
		Example: `  sandboxer sandbox forward e2e-main 8080
  sandboxer sandbox forward e2e-main 5433:5432 --service db`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, given []string) error {
			local, port, err := parsePorts(given[1])
			if err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				known, err := a.find(c.Context(), e, given[0])
				if err != nil {
					return err
				}
				dial, err := e.Forward(c.Context(), known.Receipt, service, port)
				if err != nil {
					return err
				}
				if service == "" {
					if err := tryOnce(c.Context(), dial); err != nil {
						return err
					}
				}
				return a.forward(c.Context(), dial, local)
			})
		},
	}
	c.Flags().StringVar(&service, "service", "", "service inside (default: the one the profile names)")
	return c
}

// tryOnce finds out whether the sandbox has a service that is meant when none
// is named. Whether somebody listens there may change while forwarding.
func tryOnce(ctx context.Context, dial engine.Dialer) error {
	inside, err := dial(ctx)
	if err == nil {
		return inside.Close()
	}
	if extensions.IsKind(err, extensions.KindInvalid) {
		return err
	}
	return nil
}

// parsePorts reads [LOCAL:]PORT; LOCAL 0 or none is any free port.
func parsePorts(s string) (local, port int, err error) {
	first, second, both := strings.Cut(s, ":")
	if !both {
		first, second = "0", first
	}
	local, err1 := strconv.Atoi(first)
	port, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil || local < 0 || local > 65535 || port < 1 || port > 65535 {
		return 0, 0, extensions.Errorf(extensions.KindInvalid, "%q is not a port or LOCAL:PORT", extensions.Clean(s, 40)).
			WithRemedy("write the port inside, such as 8080, or 5433:5432 to choose the one here as well")
	}
	return local, port, nil
}

type forwardView struct {
	Address string `json:"address"` // that listens here
}

func printLine(w io.Writer, line string) error {
	_, err := fmt.Fprintln(w, line)
	return err
}

func (a *app) forward(ctx context.Context, dial engine.Dialer, local int) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
	if err != nil {
		return extensions.Errorf(extensions.KindConflict, "cannot listen on port %d here: %w", local, err).
			WithRemedy("choose another local port, or leave it out")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	v := forwardView{l.Addr().String()}
	if err := a.show(v, func(w io.Writer) error { return printLine(w, v.Address) }); err != nil {
		return errors.Join(err, l.Close())
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel() // before the wait
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil // the person stopped forwarding
		}
		if err != nil {
			return err
		}
		wg.Go(func() {
			if err := carry(ctx, conn, dial); err != nil && ctx.Err() == nil {
				_, _ = fmt.Fprintf(a.err, "connection from %s: %v\n", conn.RemoteAddr(), err)
			}
		})
	}
}

// carry connects one client; each side's end of writing is passed on, so that
// a client which closes its half still gets its answer.
func carry(ctx context.Context, client net.Conn, dial engine.Dialer) error {
	defer client.Close()
	inside, err := dial(ctx)
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
