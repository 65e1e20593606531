//go:build unix

package initd

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/wire"
)

// checkTimeout bounds one readiness try.
const checkTimeout = 2 * time.Second

// check tries a readiness probe once. Exit 0 is ready.
func (c *session) check() wire.Result {
	ctx, cancel := context.WithTimeout(c.ctx, checkTimeout)
	defer cancel()
	why, err := tryOnce(ctx, c.req)
	switch {
	case err != nil:
		return wire.Result{Code: wire.CodeInvalid, Message: err.Error()}
	case why != "":
		return wire.Result{Exit: 1, Message: why}
	}
	return wire.Result{}
}

func tryOnce(ctx context.Context, req wire.Request) (why string, err error) {
	address := req.Address
	var target *url.URL
	if req.URL != "" {
		if target, err = url.Parse(req.URL); err != nil || target.Scheme != "http" || target.Host == "" {
			return "", fmt.Errorf("%q is not an http:// URL", req.URL)
		}
		if address = target.Host; target.Port() == "" {
			address = net.JoinHostPort(target.Hostname(), "80")
		}
	}
	conn, dialErr := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if dialErr != nil {
		return dialErr.Error(), nil
	}
	defer func() { _ = conn.Close() }()
	if target == nil {
		return "", nil
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: sandboxer\r\nConnection: close\r\n\r\n", target.RequestURI(),
		target.Host)
	line, readErr := bufio.NewReaderSize(conn, 1024).ReadSlice('\n')
	if readErr != nil {
		return readErr.Error(), nil
	}
	fields := strings.Fields(string(line))
	if len(fields) < 2 || !strings.HasPrefix(fields[0], "HTTP/1.") {
		return "the answer is not HTTP", nil
	}
	if fields[1][0] != '2' && fields[1][0] != '3' {
		return "HTTP status " + fields[1], nil
	}
	return "", nil
}
