package export

import (
	"net/http"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/webcall"
)

// Target says where events go. An empty Token sends none.
type Target struct {
	URL string // of the receiver; without a path, /api/v1/events is added
	// Sink names the receiver in the ledger; "" uses the URL. Keep the name when a receiver moves to
	// another address.
	Sink  string
	Token string // a bearer token
	// CA holds PEM authorities to trust instead of the system's.
	CA []byte
}

// eventsPath is where OpenMeter and compatible receivers take events.
const eventsPath = "/api/v1/events"

// endpoint is a checked Target.
type endpoint struct {
	url, sink, token string
	client           *http.Client
}

func newEndpoint(t Target) (*endpoint, error) {
	u, err := webcall.Address(t.URL)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the endpoint %w", err).
			WithRemedy("write it as https://host/path; the token comes from the environment or a file")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = eventsPath
	}
	if strings.ContainsFunc(t.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, extensions.Errorf(extensions.KindInvalid, "the token has white space or other characters that a header cannot contain")
	}
	e := &endpoint{url: u.String(), sink: t.Sink, token: t.Token}
	if e.sink == "" {
		e.sink = e.url
	}
	e.client, err = webcall.Client(t.CA)
	return e, err
}
