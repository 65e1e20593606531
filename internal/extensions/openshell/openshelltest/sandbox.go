package openshelltest

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/openshell/internal/gateway"
)

// homes are the users of a sandbox.
var homes = map[string]string{"sandbox": "/sandbox"}

// sandbox is one of the gateway's. Its meta is replaced, never changed.
type sandbox struct {
	*box.Box
	g        *Gateway
	id, name string
	space    string // the workspace
	spec     *gateway.SandboxSpec
	load     Load
	running  sync.WaitGroup // whoever waits for one of its processes

	mu      sync.Mutex
	meta    *gateway.ObjectMeta
	phase   gateway.SandboxPhase
	trouble string
	exit    *int32          // of its main process
	looks   int             // at it so far
	moved   int             // looks at it when it was to stop or to start
	asked   int             // how often its policy was
	gone    bool            // deleted, and shown once more
	streams context.Context //nolint:containedctx // it is the life of the streams out of the sandbox
	cut     context.CancelFunc
}

// newSandbox makes one that starts. Gateway.mu is held.
func (g *Gateway) newSandbox(in *gateway.CreateSandboxRequest) (*sandbox, error) {
	g.serial++
	room, err := g.shelf.New(fmt.Sprintf("room%d", g.serial), homes)
	if err != nil {
		return nil, err
	}
	s := &sandbox{Box: room, g: g, spec: in.GetSpec(), load: g.load(in.GetSpec().GetPolicy()), name: in.GetName(), space: in.GetWorkspace(),
		id: fmt.Sprintf("%08x-0000-4000-8000-%s", g.serial, random(6)), phase: gateway.SandboxPhase_SANDBOX_PHASE_PROVISIONING}
	s.meta = &gateway.ObjectMeta{Id: s.id, Name: s.name, Workspace: s.space, Labels: in.GetLabels(), Annotations: in.GetAnnotations(),
		CreatedAtMs: time.Now().UnixMilli(), ResourceVersion: 1}
	s.streams, s.cut = context.WithCancel(context.Background())
	g.sandboxes[s.id] = s
	g.creates++
	if err := s.furnish(g.images[in.GetSpec().GetTemplate().GetImage()]); err != nil {
		return nil, err
	}
	image := in.GetSpec().GetTemplate().GetImage()
	if g.images[image] == nil && image == NoImage {
		s.phase, s.trouble = gateway.SandboxPhase_SANDBOX_PHASE_ERROR, "ImagePullFailed manifest unknown"
		return s, nil
	}
	if missing := s.protect(in.GetSpec().GetPolicy().GetFilesystem()); missing != "" {
		s.phase, s.trouble = gateway.SandboxPhase_SANDBOX_PHASE_ERROR, "LandlockFailed path does not exist: "+missing
		return s, nil
	}
	return s, s.begin()
}

// begin starts its main process, with whose end it fails.
func (s *sandbox) begin() error {
	main := s.spec.GetCommand()
	cmd := exec.Command(s.LookPath(main[0]), main[1:]...) //nolint:noctx // nobody's call ends it
	cmd.Env = []string{"PATH=" + box.SearchPath, "HOME=/sandbox"}
	if err := s.Start(cmd); err != nil {
		return err
	}
	s.running.Go(func() {
		_ = cmd.Wait() // the state says it
		code := int32(cmd.ProcessState.ExitCode())
		s.mu.Lock()
		defer s.mu.Unlock()
		switch s.phase { //nolint:exhaustive // the others end it themselves
		case gateway.SandboxPhase_SANDBOX_PHASE_PROVISIONING, gateway.SandboxPhase_SANDBOX_PHASE_READY:
			s.phase, s.exit = gateway.SandboxPhase_SANDBOX_PHASE_ERROR, &code
		}
	})
	return nil
}

// shown is it at one more look; NotFound once it was deleted and shown since.
func (s *sandbox) shown() (*gateway.Sandbox, error) {
	s.mu.Lock()
	s.looks++
	switch {
	case s.phase == gateway.SandboxPhase_SANDBOX_PHASE_PROVISIONING && s.looks > 1,
		s.phase == gateway.SandboxPhase_SANDBOX_PHASE_STARTING && s.looks > s.moved:
		s.phase = gateway.SandboxPhase_SANDBOX_PHASE_READY
	case s.phase == gateway.SandboxPhase_SANDBOX_PHASE_STOPPING && s.looks > s.moved:
		s.phase = gateway.SandboxPhase_SANDBOX_PHASE_STOPPED
	}
	gone := s.gone
	s.gone = gone || s.phase == gateway.SandboxPhase_SANDBOX_PHASE_DELETING
	s.mu.Unlock()
	if gone {
		s.g.forget(s)
		return nil, status.Error(codes.NotFound, "sandbox not found")
	}
	return s.told(), nil
}

func (s *sandbox) told() *gateway.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &gateway.SandboxStatus{SandboxName: s.name, Phase: s.phase, ExitCode: s.exit}
	if s.trouble != "" {
		st.Conditions = []*gateway.SandboxCondition{{Type: "Ready", Status: "False", Message: s.trouble}}
	}
	if s.asked > policyAfter {
		st.CurrentPolicyVersion = s.load.Active
	}
	return &gateway.Sandbox{Metadata: proto.CloneOf(s.meta), Spec: proto.CloneOf(s.spec), Status: st}
}

// there reports one that was not deleted.
func (s *sandbox) there() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase != gateway.SandboxPhase_SANDBOX_PHASE_DELETING
}

// stop ends all that runs in it, and keeps its files.
func (s *sandbox) stop() error {
	s.mu.Lock()
	if s.phase != gateway.SandboxPhase_SANDBOX_PHASE_READY {
		defer s.mu.Unlock()
		return refuse(codes.FailedPrecondition, "sandbox is not running: %s", s.phase)
	}
	s.phase, s.moved = gateway.SandboxPhase_SANDBOX_PHASE_STOPPING, s.looks+1
	s.cut()
	s.mu.Unlock()
	err := s.Kill()
	s.running.Wait()
	return err
}

// restart starts its main process anew, and loads its policy.
func (s *sandbox) restart() error {
	s.g.mu.Lock()
	load := s.g.load(s.spec.GetPolicy())
	s.g.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != gateway.SandboxPhase_SANDBOX_PHASE_STOPPED {
		return refuse(codes.FailedPrecondition, "sandbox is not stopped: %s", s.phase)
	}
	s.phase, s.moved, s.asked, s.load = gateway.SandboxPhase_SANDBOX_PHASE_STARTING, s.looks+1, 0, load
	s.streams, s.cut = context.WithCancel(context.Background())
	return s.begin()
}

// remove ends all that runs in it, and its files.
func (s *sandbox) remove() error {
	s.mu.Lock()
	s.phase = gateway.SandboxPhase_SANDBOX_PHASE_DELETING
	s.cut()
	s.mu.Unlock()
	err := s.Remove()
	s.running.Wait()
	return err
}

// sever ends all streams that run now.
func (s *sandbox) sever() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut()
	if s.phase != gateway.SandboxPhase_SANDBOX_PHASE_DELETING {
		s.streams, s.cut = context.WithCancel(context.Background())
	}
}

// life is that of streams which begin now, if it runs.
func (s *sandbox) life() (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != gateway.SandboxPhase_SANDBOX_PHASE_READY {
		return nil, refuse(codes.FailedPrecondition, "sandbox is not ready")
	}
	return s.streams, nil
}
