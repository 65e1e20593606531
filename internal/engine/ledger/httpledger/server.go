package httpledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Principal is who a token stands for.
type Principal struct {
	// Token names the token, for limits and logs; it is not the token.
	Token string
	// Account is org/workspace, or an org for all of its.
	Account string
	// Until is when the token expires; zero = never.
	Until time.Time
}

// ownersMark ends the names of an account's holders, so that one account
// cannot keep, end or use those of another.
func (p Principal) ownersMark() string {
	sum := sha256.Sum256([]byte(p.Account))
	return "." + hex.EncodeToString(sum[:8])
}

func (p Principal) newHolder(now time.Time) ledger.HolderID {
	return ledger.NewHolderID(now) + ledger.HolderID(p.ownersMark())
}

// Owns reports a holder that the account made through a server.
func (p Principal) Owns(id ledger.HolderID) bool {
	return strings.HasSuffix(string(id), p.ownersMark())
}

// Config is what a server gives out, to whom.
type Config struct {
	// Ledger is given out. It must keep leases: see ledger.Lessor.
	Ledger ledger.Ledger
	// Authenticate finds whose a token is.
	Authenticate func(token string) (Principal, bool)
	// View is the ledger as a principal may see and change it.
	View func(Principal) ledger.Ledger
	// PerSecond and Burst bound the requests of one token; 0 = 100 and 500.
	PerSecond float64
	Burst     int
	// Now names holders and tells which tokens have expired; nil = time.Now.
	Now func() time.Time
	// Log gets a line for each request; nil discards it.
	Log *slog.Logger
	// Plain tells clients how the ledger itself fails: its file, its database's
	// host. Without it they are told where in the log that stands.
	Plain bool
}

// Server gives out a ledger over HTTP.
type Server struct {
	Config
	lessor ledger.Lessor
	now    func() time.Time

	verifying chan struct{}      // of one at a time: it reads the whole ledger
	health    singleflight.Group // whoever asks, the ledger is looked at once at a time

	mu     sync.Mutex
	limits map[string]*allowance
}

// allowance is what one token may ask for.
type allowance struct {
	*rate.Limiter
	// memory bounds what its requests under way hold, and so their number.
	memory *semaphore.Weighted
}

const (
	// memoryOfToken is how many bytes the requests of one token may have under
	// way; each counts for its length, and for leastRequest at least.
	memoryOfToken = 4 * maxRequest
	leastRequest  = 256 << 10
)

// NewServer checks the configuration: KindUnsupported for a ledger that keeps
// no leases, such as another server's.
func NewServer(c Config) (*Server, error) {
	s := &Server{Config: c, now: c.Now, limits: map[string]*allowance{}, verifying: make(chan struct{}, 1)}
	lessor, ok := c.Ledger.(ledger.Lessor)
	if !ok {
		return nil, oops(extensions.KindUnsupported, "the ledger %s cannot be given out", c.Ledger.URL()).
			WithRemedy("serve an SQLite or PostgreSQL ledger")
	}
	s.lessor = lessor
	if s.now == nil {
		s.now = time.Now
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	s.PerSecond, s.Burst = cmp.Or(s.PerSecond, 100), cmp.Or(s.Burst, 500)
	return s, nil
}

// operationLimit ends an operation whose ledger does not answer.
const operationLimit = 70 * time.Second

// ServeHTTP implements http.Handler: the operations, and /healthz.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		s.healthy(w, r)
		return
	}
	begun := time.Now()
	id := r.Header.Get(headerRequest)
	if !requestForm.MatchString(id) {
		id = newRequestID()
	}
	w.Header().Set(headerRequest, id)
	w.Header().Set("Cache-Control", "no-store")
	who, answer, err := s.operate(w, r)
	kind := extensions.KindOf(err)
	s.answer(w, answer, s.discreet(err, id))
	s.Log.Info("request", slog.String("id", id), slog.String("operation", knownOperation(r)), slog.String("token", who.Token),
		slog.String("account", who.Account), slog.String("kind", string(kind)), slog.Duration("took", time.Since(begun)))
}

func (s *Server) operate(w http.ResponseWriter, r *http.Request) (Principal, any, error) {
	who, err := s.authenticate(r)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.Header().Set("Connection", "close") // strangers keep none
		return who, nil, err
	}
	may := s.allowanceOf(who)
	if wait := may.wait(); wait > 0 {
		return who, nil, turnedAway(wait, errTooMany, "wait, or have the server's limit raised")
	}
	f, ok := routes[operationOf(r)]
	switch {
	case !ok:
		return who, nil, oops(extensions.KindUnsupported, "the server has no operation %q", extensions.Clean(operationOf(r), 40)).
			WithRemedy("use a server that is not older than the client")
	case r.Method != http.MethodPost || r.Header.Get("Content-Type") != contentType:
		return who, nil, oops(extensions.KindInvalid, "operations are POST requests of %s", contentType)
	}
	ctx, cancel := context.WithTimeout(r.Context(), operationLimit)
	defer cancel()
	release, err := may.begin(ctx, r.ContentLength)
	if err != nil {
		return who, nil, err
	}
	defer release()
	a, err := f(ctx, client{s.View(who), who, s}, http.MaxBytesReader(w, r.Body, maxRequest))
	return who, a, err
}

func operationOf(r *http.Request) string {
	op, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok {
		return ""
	}
	return op
}

// knownOperation is for the log, where strangers write nothing of their own.
func knownOperation(r *http.Request) string {
	op := operationOf(r)
	if _, ok := routes[op]; !ok {
		return "unknown"
	}
	return op
}

func (s *Server) authenticate(r *http.Request) (Principal, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if ok {
		if who, known := s.Authenticate(token); known {
			return who, s.expired(who)
		}
	}
	return Principal{}, oops(extensions.KindUnauthorized, "the ledger does not know this token").
		WithRemedy("have one made with `sandboxer ledger token create ACCOUNT` where the ledger is served")
}

// expired refuses a token whose time is over.
func (s *Server) expired(who Principal) error {
	if who.Until.IsZero() || s.now().Before(who.Until) {
		return nil
	}
	return oops(extensions.KindUnauthorized, "the ledger token %s expired at %s", who.Token, who.Until.UTC().Format(time.RFC3339)).
		WithRemedy("have a new one made with `sandboxer ledger token create ACCOUNT` where the ledger is served")
}

func (s *Server) allowanceOf(who Principal) *allowance {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.limits[who.Token]
	if a == nil {
		a = &allowance{rate.NewLimiter(rate.Limit(s.PerSecond), s.Burst), semaphore.NewWeighted(memoryOfToken)}
		s.limits[who.Token] = a
	}
	return a
}

// wait is how long the token has to wait for its turn; 0 = not at all.
func (a *allowance) wait() time.Duration {
	turn := a.Reserve()
	wait := turn.Delay()
	if wait > 0 {
		turn.Cancel()
	}
	return wait
}

// begin waits until a request of so many bytes (-1 = it does not say) fits
// beside those of the token that are under way.
func (a *allowance) begin(ctx context.Context, length int64) (release func(), err error) {
	if length < 0 || length > maxRequest {
		length = maxRequest // no more of it is read
	}
	length = max(length, leastRequest)
	if err := a.memory.Acquire(ctx, length); err != nil {
		return nil, turnedAway(time.Second, errTooMany, "ask for less at the same time")
	}
	return func() { a.memory.Release(length) }, nil
}

// alone waits for the turn of what reads the whole ledger.
func (s *Server) alone(ctx context.Context) (release func(), err error) {
	select {
	case s.verifying <- struct{}{}:
		return func() { <-s.verifying }, nil
	case <-ctx.Done():
		return nil, turnedAway(0, errVerifying, "run again later")
	}
}

func (s *Server) answer(w http.ResponseWriter, a any, err error) {
	w.Header().Set("Content-Type", contentType)
	if err == nil {
		_ = encode(w, a) // a client that is gone asks again
		return
	}
	f := asFailure(err)
	status := statusOf(f.Kind)
	if w.Header().Get("WWW-Authenticate") != "" {
		status = http.StatusUnauthorized
	}
	if f.RetryAfter > 0 && f.Kind == extensions.KindUnavailable {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", strconv.Itoa(int((f.RetryAfter+time.Second-1)/time.Second)))
	}
	w.WriteHeader(status)
	_ = encode(w, f)
}

// healthy answers 200 while the ledger can be read.
func (s *Server) healthy(w http.ResponseWriter, r *http.Request) {
	_, err, _ := s.health.Do("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
		defer cancel()
		return s.Ledger.Head(ctx, "healthz")
	})
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

var requestForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func newRequestID() string { return rand.Text() }
