// Package mcpserver lets an agent make and use sandboxes through the Model Context Protocol, within limits that the person
// who starts it sets. The agent is not trusted: it may act on instructions that somebody else put into what it reads. So
// it sees only the sandboxes that this server made for it, and they end with it.
package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits are what the person who starts the server allows.
type Limits struct {
	// Profiles are those that may be used: "profile.x" or "profile.x@1.0.0". At least one.
	Profiles []string
	// Roots are folders of this machine; the input repo may name one or a folder below. None: no repo.
	Roots []string
	// Budget is what all sandboxes may cost together, such as "5.00 USD".
	Budget string
	// Sandboxes is how many may live at once, 1 to 100; as many snapshots may be kept.
	Sandboxes int
	// TTL is the longest life of a sandbox; positive.
	TTL time.Duration
	// Output is how many bytes of each stream or file an answer holds, 1 KiB to 1 MiB.
	Output int
	// OpenNetwork admits profiles whose network is open.
	OpenNetwork bool
}

// endTime bounds the end of everything when the agent has gone. What it does not reach ends at its deadline.
const endTime = 5 * time.Minute

// Server serves one agent.
type Server struct {
	engine   *engine.Engine
	limits   Limits
	purse    *engine.Purse
	profiles map[string]allowed // by id, and by id@version where the person named one
	roots    []string           // without symbolic links
	session  string
	notify   func(engine.Notice)

	calls sync.WaitGroup
	mu    sync.Mutex
	// over refuses new calls; see end.
	over      bool
	making    int
	sandboxes map[engine.ID]*made
	snapshots map[string]engine.SnapshotView
	keeping   int
}

// made is a sandbox of this server.
type made struct {
	engine.Sandbox
	share *engine.Share
}

// New checks the limits against the catalog. Errors are KindInvalid.
func New(e *engine.Engine, limits Limits, notify func(engine.Notice)) (*Server, error) {
	s := &Server{engine: e, limits: limits, session: strings.ToLower(rand.Text()[:12]), notify: notify,
		sandboxes: map[engine.ID]*made{}, snapshots: map[string]engine.SnapshotView{}}
	var err error
	if s.purse, err = engine.NewPurse(limits.Budget); err != nil {
		return nil, extensions.AtField("budget", err)
	}
	if s.profiles, err = admit(e, limits); err != nil {
		return nil, err
	}
	if s.roots, err = resolveRoots(limits.Roots); err != nil {
		return nil, err
	}
	if limits.Sandboxes < 1 || limits.Sandboxes > 100 {
		return nil, extensions.Errorf(extensions.KindInvalid, "%d sandboxes at once: want 1 to 100", limits.Sandboxes).At("max-sandboxes")
	}
	if limits.TTL <= 0 {
		return nil, extensions.Errorf(extensions.KindInvalid, "a life of %s: want a positive duration", limits.TTL).At("max-ttl")
	}
	if limits.Output < 1<<10 || limits.Output > 1<<20 {
		return nil, extensions.Errorf(extensions.KindInvalid, "%d bytes of output: want 1024 to 1048576", limits.Output).At("max-output")
	}
	return s, nil
}

// Run speaks to the agent until it closes the connection or ctx ends, and then ends what it made. The error says what
// could not be ended.
func (s *Server) Run(ctx context.Context, version string, in io.ReadCloser, out io.WriteCloser) error {
	err := s.protocol(version).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		err = nil // the signal is the caller's to tell
	}
	return errors.Join(err, s.end(context.WithoutCancel(ctx)))
}

func (s *Server) protocol(version string) *mcp.Server {
	p := mcp.NewServer(&mcp.Implementation{Name: "sandboxer", Title: "sandboxer", Version: version},
		&mcp.ServerOptions{Instructions: s.instructions(), Capabilities: &mcp.ServerCapabilities{}})
	addTool(s, p, "sandbox_create", "Create a sandbox and wait until it is ready. "+s.offer(), changes, s.create)
	addTool(s, p, "sandbox_exec", "Run a command inside a sandbox and wait until it ends.", destroys, s.exec)
	addTool(s, p, "sandbox_read", "Read a file inside a sandbox.", reads, s.read)
	addTool(s, p, "sandbox_write", "Write a file inside a sandbox. Creates missing folders and replaces an existing file.", destroys, s.write)
	addTool(s, p, "sandbox_list", "List your sandboxes and snapshots, and what remains of your limits.", reads, s.list)
	addTool(s, p, "sandbox_snapshot", "Take a snapshot of a sandbox, to create others from it in this session.", changes, s.snapshot)
	addTool(s, p, "sandbox_destroy", "Destroy a sandbox, or delete a snapshot.", destroys, s.destroy)
	return p
}

func (s *Server) instructions() string {
	return "Sandboxes are your own machines to run code in. They end with this session, and each at its deadline at the latest. " +
		"Code inside cannot reach the network unless the profile allows it."
}

// offer describes the profiles.
func (s *Server) offer() string {
	var b strings.Builder
	b.WriteString("Profiles:")
	for _, ref := range s.references() {
		p := s.profiles[ref]
		fmt.Fprintf(&b, "\n- %s", ref)
		for _, in := range p.inputs {
			fmt.Fprintf(&b, "\n  input %s (%s)", in.Name, in.Type)
			if in.Required {
				b.WriteString(", required")
			}
			if in.Doc != "" {
				b.WriteString(": " + in.Doc)
			}
		}
		if len(p.egress) > 0 {
			b.WriteString("\n  reaches " + strings.Join(p.egress, ", "))
		}
	}
	if len(s.roots) > 0 {
		b.WriteString("\nThe input repo must be a folder in: " + strings.Join(s.roots, ", "))
	}
	fmt.Fprintf(&b, "\nAt most %d at once, each for at most %s, together for at most %s.", s.limits.Sandboxes, s.limits.TTL, s.limits.Budget)
	return b.String()
}

type effect int

const (
	reads effect = iota
	changes
	destroys
)

// addTool adds one tool. A call that comes when the session is over is refused; end waits for those under way. What fails
// is told to the agent as a result, with what to do.
func addTool[In, Out any](s *Server, p *mcp.Server, name, description string, e effect,
	do func(context.Context, In, func(engine.Notice)) (Out, error),
) {
	closed, destructive := false, e == destroys
	tool := &mcp.Tool{Name: name, Description: description, Annotations: &mcp.ToolAnnotations{
		ReadOnlyHint: e == reads, DestructiveHint: &destructive, OpenWorldHint: &closed,
	}}
	mcp.AddTool(p, tool, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		var none Out
		if !s.begin() {
			return nil, none, errors.New("the session is over")
		}
		defer s.calls.Done()
		out, err := do(ctx, in, s.progress(ctx, req))
		if err != nil {
			return nil, none, told(err)
		}
		return nil, out, nil
	})
}

func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.calls.Add(1)
	return true
}

// progress passes notices to the person, and to an agent that asked for them.
func (s *Server) progress(ctx context.Context, req *mcp.CallToolRequest) func(engine.Notice) {
	token := req.Params.GetProgressToken()
	var mu sync.Mutex
	step := 0.0
	return func(n engine.Notice) {
		s.notify(n)
		if token == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		step++
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: step, Message: n.Summary})
	}
}

// tell passes on what the engine returned with a result.
func tell(notify func(engine.Notice), all []engine.Notice) {
	for _, n := range all {
		notify(n)
	}
}

// told is an error with its kind and remedy, as the agent reads it.
func told(err error) error {
	text := fmt.Sprintf("%s: %v", extensions.KindOf(err), err)
	if remedy := extensions.RemedyOf(err); remedy != "" {
		text += "; " + remedy
	}
	return errors.New(text)
}

// end waits for the calls under way, which the closed connection has canceled, and ends everything that they made.
func (s *Server) end(ctx context.Context) error {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.calls.Wait()
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	var mu sync.Mutex
	var failed []error
	var all sync.WaitGroup
	remember := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failed = append(failed, err)
	}
	for _, m := range slices.Collect(maps.Values(s.sandboxes)) {
		all.Go(func() {
			if _, err := s.finish(ctx, m, s.notify); err != nil {
				remember(fmt.Errorf("%s could not be destroyed and ends %s: %w", m.ID, m.ExpiresAt.UTC().Format(time.RFC3339), err))
			}
		})
	}
	all.Wait()
	for id, v := range s.snapshots {
		if err := s.forget(ctx, v, s.notify); err != nil {
			remember(fmt.Errorf("the snapshot %s could not be deleted and is kept until %s: %w", id, v.ExpiresAt.UTC().Format(time.RFC3339), err))
		}
	}
	return errors.Join(failed...)
}

// references lists the profiles as the agent may name them.
func (s *Server) references() []string {
	return slices.Sorted(maps.Keys(s.profiles))
}
