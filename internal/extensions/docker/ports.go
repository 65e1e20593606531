package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/execwire"
)

// Dial implements extensions.PortForwarder. Nothing is published, and a sandbox may have no network: a relay
// inside, of what the image has, connects to the loopback of a container. Where the service's image has nothing for that, a
// relay of the agent's connects to the service.
func (b *Backend) Dial(ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error) {
	c, err := b.dial(ctx, h, service, port)
	if err != nil {
		return nil, failed("dial", h.ID, err)
	}
	return c, nil
}

func (b *Backend) dial(ctx context.Context, h extensions.Handle, service string, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, extensions.Errorf(extensions.KindInvalid, "%d is not a port", port)
	}
	c, err := b.enter(ctx, h, service)
	if err != nil {
		return nil, err
	}
	if c.Labels[labelShared] == "" {
		at, err := b.relay(ctx, c, port)
		if !errors.Is(err, errNoRelay) || service == "" || service == extensions.AgentService {
			return at, err
		}
	}
	if c, err = b.enter(ctx, h, ""); err != nil {
		return nil, err
	}
	return b.relay(ctx, c, port, service)
}

// relay connects to a port of a container, or from there to one of another name.
func (b *Backend) relay(ctx context.Context, c container.Summary, port int, to ...string) (net.Conn, error) {
	nonce := execwire.NewNonce()
	argv := append([]string{"/bin/sh", "-c", marking(c) + program("relay"), "sh", nonce, strconv.Itoa(port)}, to...)
	made, err := b.engine.ExecCreate(ctx, c.ID, client.ExecCreateOptions{Cmd: argv, AttachStdin: true, AttachStdout: true, AttachStderr: true})
	if err != nil {
		return nil, notStarted(err)
	}
	at, err := b.engine.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, notStarted(err)
	}
	r := newRelayed(at, port)
	said := make(chan string, 1)
	go r.receive(nonce, said)
	select {
	case word, ok := <-said:
		if err := answered(word, ok, port); err != nil {
			_ = r.Close()
			return nil, err
		}
		return r, nil
	case <-ctx.Done():
		_ = r.Close()
		return nil, ctx.Err()
	}
}

var errNoRelay = errors.New("the image has nothing that can relay a connection")

func answered(word string, ok bool, port int) error {
	switch {
	case word == "connected":
		return nil
	case word == "refused":
		return extensions.Errorf(extensions.KindUnavailable, "nothing listens on port %d in the sandbox", port)
	case word == "none":
		return extensions.Errorf(extensions.KindUnsupported, "%w", errNoRelay).
			WithRemedy("use an image with python3, perl, nc, socat or bash")
	case !ok:
		return extensions.Errorf(extensions.KindUnavailable, "the relay in the sandbox ended before it connected")
	}
	return extensions.Errorf(extensions.KindInternal, "the relay in the sandbox said something else")
}

// relayed is a connection through an exec: a pipe that the streams are copied to.
type relayed struct {
	net.Conn // our end
	far      net.Conn
	at       client.ExecAttachResult
	addr     relayAddr
}

type relayAddr string

func (relayAddr) Network() string  { return "tcp" }
func (a relayAddr) String() string { return string(a) }

func newRelayed(at client.ExecAttachResult, port int) *relayed {
	near, far := net.Pipe()
	return &relayed{Conn: near, far: far, at: at, addr: relayAddr(net.JoinHostPort("sandbox", strconv.Itoa(port)))}
}

// receive copies what comes from inside; said gets the first message and is closed at the end.
func (r *relayed) receive(nonce string, said chan<- string) {
	defer close(said)
	defer func() { _ = r.far.Close() }()
	out := &opening{to: r.far}
	words := execwire.NewFrames(nonce, nil, func(word []byte) {
		select {
		case said <- string(word):
			out.open()
		default:
		}
	})
	_, _ = stdcopy.StdCopy(out, words, r.at.Reader)
}

// opening holds back what the port says until the relay's first message is heard: the engine may send the two in the other
// order, and nobody reads the connection before it is known to be one. One goroutine uses it.
type opening struct {
	to     io.Writer
	opened bool
	held   []byte
}

// earliest is how much a port can say before the engine passes the message on, in bytes: what its pipes hold, and more.
const earliest = 1 << 20

func (o *opening) open() {
	if o.opened = true; len(o.held) > 0 { // an empty write would wait for a reader
		_, _ = o.to.Write(o.held) // if it fails, so does the next one
		o.held = nil
	}
}

func (o *opening) Write(p []byte) (int, error) {
	switch {
	case o.opened:
		return o.to.Write(p)
	case len(o.held)+len(p) > earliest:
		return 0, errors.New("the relay in the sandbox does not say that it is connected")
	}
	o.held = append(o.held, p...)
	return len(p), nil
}

// Write sends to the port inside.
func (r *relayed) Write(p []byte) (int, error) { return r.at.Conn.Write(p) }

// CloseWrite ends what the port inside reads.
func (r *relayed) CloseWrite() error { return r.at.CloseWrite() }

func (r *relayed) Close() error {
	r.at.Close()
	_ = r.far.Close()
	return r.Conn.Close()
}

func (r *relayed) SetDeadline(t time.Time) error {
	_ = r.at.Conn.SetWriteDeadline(t)
	return r.Conn.SetDeadline(t)
}

func (r *relayed) SetWriteDeadline(t time.Time) error { return r.at.Conn.SetWriteDeadline(t) }
func (r *relayed) RemoteAddr() net.Addr               { return r.addr }
