package composessh

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// failed gives err the contract's type, the verb and the sandbox it concerns.
func failed(op string, id extensions.ID, err error) error {
	if err == nil {
		return nil
	}
	if _, bad := extensions.ParseID(string(id)); bad != nil {
		id = "" // what is no id does not belong into a message
	}
	var e *extensions.Error
	if errors.As(err, &e) {
		c := *e
		if c.Op == "" {
			c.Op = op
		}
		if c.ID == "" {
			c.ID = id
		}
		return &c
	}
	kind := extensions.KindInternal
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		kind = extensions.KindTimeout
	case errors.Is(err, context.Canceled):
		kind = extensions.KindIndeterminate
	}
	return &extensions.Error{Kind: kind, Op: op, ID: id, Err: err}
}

// failure is what a script refused with. Kind is one of the contract's or of
// those below, which say who speaks in Detail.
type failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	Detail  string `json:"detail"` // what docker or a service printed last
	Made    bool   `json:"made"`   // something may exist
	Health  string `json:"health"` // see health_of in sh/look.sh
}

const (
	failureDocker  = "docker"         // Detail is what docker printed
	failureService = "service_failed" // a service ended; Detail is the end of its log
	failureLate    = "service_late"   // a service is not ready in time; the same
)

// Bounds of remote text in a message, in characters.
const (
	maxMessage = 1000
	maxDetail  = 2500
	maxHealth  = 600
)

// knownKinds are those a script may name itself.
var knownKinds = map[string]extensions.Kind{}

func init() {
	for _, k := range []extensions.Kind{extensions.KindInvalid, extensions.KindUnauthorized, extensions.KindNotFound, extensions.KindConflict,
		extensions.KindIndeterminate, extensions.KindExhausted, extensions.KindUnavailable, extensions.KindTimeout, extensions.KindUnsupported,
		extensions.KindInternal, extensions.KindInterrupted, extensions.KindFailed} {
		knownKinds[string(k)] = k
	}
}

// classify makes the contract's error of what a host's script told. It is the
// one place where text of Docker is read.
func (f failure) classify() error {
	message, detail := extensions.Clean(f.Message, maxMessage), lastLines(f.Detail)
	text := message
	if detail != "" {
		text += ": " + detail
	}
	remedy := extensions.Clean(f.Remedy, maxMessage)
	switch f.Kind {
	case failureDocker:
		kind, todo := ofDocker(f.Detail)
		e := extensions.Errorf(kind, "%s", text).WithRemedy("%s", todo)
		if strings.Contains(f.Detail, noAnswer) {
			e.RetryAfter = hungPause
		}
		return e
	case failureService, failureLate:
		kind := extensions.KindFailed
		if f.Kind == failureLate {
			kind = extensions.KindTimeout
		}
		text = message
		whose := "its last lines"
		for _, said := range parseHealth(f.Health) { // there is one at most
			text, whose = text+said, "the service's last lines"
		}
		if detail != "" {
			text += "; " + whose + ": " + detail
		}
		return extensions.Errorf(kind, "%s", text).WithRemedy("correct the service, or its health check, and try again")
	}
	kind, ok := knownKinds[f.Kind]
	if !ok {
		kind = extensions.KindInternal
	}
	return extensions.Errorf(kind, "%s", text).WithRemedy("%s", remedy)
}

// dockerWords are what Docker and Compose say, in the order they are looked
// for, and what that means.
var dockerWords = []struct {
	words  []string // any of them, in lower case
	kind   extensions.Kind
	remedy string
}{
	{[]string{"permission denied while trying to connect", "dial unix /var/run/docker.sock: connect: permission denied", "got permission denied"}, extensions.KindUnauthorized,
		"let the login use Docker: `sudo usermod -aG docker USER` and log in again (that is as good as root on the host), or set up rootless Docker"},
	{[]string{"cannot connect to the docker daemon", "is the docker daemon running", "error during connect", "connection refused"}, extensions.KindUnavailable,
		"start Docker on the host: `sudo systemctl start docker`"},
	{[]string{noAnswer}, extensions.KindUnavailable, "see what keeps Docker on the host: `systemctl status docker`, its log (journalctl -u docker), a full disk, too little memory"},
	{[]string{"no space left on device", "disk quota exceeded"}, extensions.KindExhausted, "free some disk space on the host: `docker system df` shows what Docker holds"},
	{[]string{"pool overlaps with other one", "could not find an available, non-overlapping ipv4 address pool", "address pools have been fully subnetted", "networks have overlapping"}, extensions.KindExhausted,
		"give the binding a range that nothing else on the host uses: config.subnets"},
	{[]string{"port is already allocated", "address already in use", "ports are not available"}, extensions.KindConflict,
		"publish another port, or let Docker choose one by leaving the host's port out"},
	{[]string{"no matching manifest for", "exec format error"}, extensions.KindUnsupported, "use an image for the host's architecture"},
	{[]string{"pull access denied", "manifest unknown", "manifest for", "no such image", "repository does not exist", "invalid reference format"}, extensions.KindInvalid,
		"check the image's name and tag; for a private registry run `docker login` as this login on the host"},
	{[]string{"unauthorized: ", "no basic auth credentials", "authentication required", "denied: "}, extensions.KindUnauthorized,
		"run `docker login` for the image's registry as this login on the host"},
	{[]string{"toomanyrequests", "too many requests"}, extensions.KindUnavailable, "the registry limits pulls: log in there on the host, or try later"},
	{[]string{"tls handshake timeout", "no such host", "i/o timeout", "client.timeout exceeded", "temporary failure in name resolution", "network is unreachable"}, extensions.KindUnavailable,
		"check that the host reaches the image's registry"},
	{[]string{"cannot allocate memory", "out of memory", "not enough memory"}, extensions.KindExhausted, "free some memory on the host, or ask for less"},
	{[]string{"could not select device driver", "nvidia-container"}, extensions.KindUnsupported, "install the GPU's container toolkit on the host"},
	{[]string{"executable file not found", "no command specified", "no such file or directory: unknown"}, extensions.KindInvalid, "check the service's command: the image has no such program"},
}

// noAnswer is what docker_soon of sh/list.sh says. A Docker that hangs costs its
// full time each time it is asked, so it is not asked again for hungPause.
const (
	noAnswer  = "gave no answer within"
	hungPause = time.Minute
)

func ofDocker(text string) (extensions.Kind, string) {
	text = strings.ToLower(text)
	for _, d := range dockerWords {
		for _, w := range d.words {
			if strings.Contains(text, w) {
				return d.kind, d.remedy
			}
		}
	}
	return extensions.KindInternal, "see what Docker said; on the host `docker info` and its log (journalctl -u docker) tell more"
}

// lastLines is the end of what something printed, fit for a message.
func lastLines(text string) string { return lastLinesOf(text, maxDetail) }

// lastLinesOf is lastLines bounded to limit characters.
func lastLinesOf(text string, limit int) string {
	runes := []rune(strings.TrimSpace(extensions.StripEscapes(text)))
	if len(runes) > limit {
		runes = append([]rune("… "), runes[len(runes)-limit:]...)
	}
	lines := strings.FieldsFunc(string(runes), func(r rune) bool { return r == '\n' || r == '\r' })
	return extensions.Clean(strings.Join(lines, " | "), limit+100)
}
