package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func (a *app) sandboxForwardCommand() *cobra.Command {
	var service string
	c := &cobra.Command{
		Use:   "forward ID|NAME [LOCAL:]PORT",
		Short: "Forward a local port to a port inside, until interrupted",
		Long: `Listens on 127.0.0.1 and forwards every connection to a port inside the sandbox,
even if its network is denied. Without LOCAL it chooses a free port. It prints the
address once the port is open, and ends with Ctrl-C.`,
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
	c.Flags().StringVar(&service, "service", "", "service inside (default: the profile's)")
	return c
}

// tryOnce reports whether the sandbox has a default service. Whether anything listens there may change while
// forwarding.
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

// parsePorts reads [LOCAL:]PORT. LOCAL 0 or absent means any free port.
func parsePorts(s string) (local, port int, err error) {
	first, second, both := strings.Cut(s, ":")
	if !both {
		first, second = "0", first
	}
	local, err1 := strconv.Atoi(first)
	port, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil || local < 0 || local > 65535 || port < 1 || port > 65535 {
		return 0, 0, extensions.Errorf(extensions.KindInvalid, "%q is not a port or LOCAL:PORT", extensions.Clean(s, 40)).
			WithRemedy("give the port inside, such as 8080, or LOCAL:PORT, such as 5433:5432")
	}
	return local, port, nil
}

type forwardView struct {
	Address string `json:"address"` // where this machine listens
}

func printLine(w io.Writer, line string) error {
	_, err := fmt.Fprintln(w, line)
	return err
}

func (a *app) forward(ctx context.Context, dial engine.Dialer, local int) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
	if err != nil {
		return extensions.Errorf(extensions.KindConflict, "cannot listen on port %d here: %w", local, err).
			WithRemedy("choose another local port, or give none")
	}
	v := forwardView{l.Addr().String()}
	if err := a.show(v, func(w io.Writer) error { return printLine(w, v.Address) }); err != nil {
		return errors.Join(err, l.Close())
	}
	accept := func() (io.ReadWriteCloser, error) { return l.Accept() }
	return dial.Serve(ctx, accept, func() { _ = l.Close() }, func(client io.ReadWriteCloser, err error) {
		_, _ = fmt.Fprintf(a.err, "connection from %s: %v\n", client.(net.Conn).RemoteAddr(), err)
	})
}
