package docker

import (
	"context"
	"errors"
	"io/fs"
	"net"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// notDialed says that the engine was not reached, so that nothing was sent. The engine's client replaces errors
// by their text and by what they wrap, and would lose this one's reason: it shows neither.
type notDialed struct{ why *extensions.Error }

func (notDialed) Error() string { return "the Docker engine was not reached" }

// As gives the reason to whoever asks for the contract's error.
func (n notDialed) As(target any) bool {
	to, ok := target.(**extensions.Error)
	if ok {
		*to = n.why
	}
	return ok
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// telling makes the failures of dial tell that nothing was sent.
func telling(where string, dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		var known *extensions.Error
		switch {
		case errors.As(err, &known):
		case errors.Is(err, fs.ErrPermission):
			known = extensions.Errorf(extensions.KindUnauthorized, "this user may not use the Docker engine at %s", where).
				WithRemedy("join the group docker, use rootless Docker, or run as a user who may")
		default:
			known = extensions.Errorf(extensions.KindUnreachable, "no Docker engine answers at %s: %s", where,
				extensions.Clean(err.Error(), maxMessage)).
				WithRemedy("%s", startDocker)
		}
		if known.Kind == extensions.KindUnavailable { // the host answered, and nothing listens at the engine's socket
			told := *known
			told.Kind, known = extensions.KindUnreachable, &told
		}
		return nil, notDialed{known}
	}
}
