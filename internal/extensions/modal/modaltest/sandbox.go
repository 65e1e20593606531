package modaltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/box"
)

// homes are the users of a sandbox.
var homes = map[string]string{"root": "/root"}

// sandbox is one of the workspace's. Its tags are guarded by Vendor.mu, and what changes with its end by its own.
type sandbox struct {
	*box.Box
	v             *Vendor
	id, app, task string
	backend       int
	asked         *pb.Sandbox
	env           map[string]string // of its image
	place         string            // where it runs
	tags          []*pb.SandboxTag
	made, ends    time.Time
	connect       string // its connect token
	mu            sync.Mutex
	looks         int // at its task so far
	result        *pb.GenericResult
	over          time.Time
	hidden        bool // the end was not shown yet
	execs         map[string]*execution
	streams       context.Context //nolint:containedctx // it is the life of the streams out of the sandbox
	cut           context.CancelFunc
}

// anywhere stands for the vendor's own choice among places.
const anywhere = ""

// places has one place of a cloud in each region that the vendor's guide names, and its zone where a cloud has them.
var places = map[string]string{anywhere: "us-central1-a", "us": "us-ashburn-1", "us-east": "eastus", "us-central": "us-chicago-1",
	"us-south": "us-south1-b", "us-west": "us-west-2", "eu": "swedencentral", "eu-west": "europe-west4-c", "eu-north": "eu-north-1",
	"eu-south": "eu-south-2", "ap": "asia-northeast1-a", "ap-northeast": "japaneast", "ap-southeast": "ap-southeast-3",
	"ap-south": "ap-south-1", "ap-melbourne": "ap-melbourne-1", "jp": "japanwest", "au": "ap-sydney-1", "uk": "eu-west-2",
	"ca": "ca-montreal-1", "me": "me-west1-a", "sa": "sa-east-1", "af": "southafricanorth", "mx": "mexicocentral"}

// letters makes an identifier as the vendor does.
func letters(n int) string {
	const of = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := make([]byte, n)
	for i := range out {
		out[i] = of[rand.IntN(len(of))]
	}
	return string(out)
}

// newSandbox makes one that runs, with the files of an image.
func (v *Vendor) newSandbox(app string, from *image, want *pb.Sandbox, tags []*pb.SandboxTag, backend int) (*sandbox, error) {
	v.serial++
	name := fmt.Sprintf("room%d", v.serial)
	var room *box.Box
	var err error
	if from.folder != "" {
		room, err = v.shelf.Copy(name, from.folder, homes)
	} else {
		room, err = v.shelf.New(name, homes)
	}
	if err != nil {
		return nil, err
	}
	s := &sandbox{Box: room, v: v, app: app, backend: backend, asked: want, env: from.env, tags: tags, made: v.clock.Now(),
		task:    "ta-" + letters(26),
		connect: random(16), execs: map[string]*execution{}}
	s.id = "sb-" + letters(22)
	if backend == 2 {
		s.id = "sb-" + letters(26)
	}
	if s.place = v.place; s.place == "" {
		s.place = places[anywhere]
		if asked := want.GetSchedulerPlacement().GetRegions(); len(asked) > 0 {
			s.place = places[asked[0]]
		}
	}
	s.ends = s.made.Add(time.Duration(want.GetTimeoutSecs()) * time.Second)
	s.streams, s.cut = context.WithCancel(context.Background())
	v.sandboxes[s.id] = s
	v.creates++
	return s, nil
}

func (s *sandbox) lives() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result == nil
}

// finish ends it, once.
func (s *sandbox) finish(as pb.GenericResult_GenericStatus) error {
	now := s.v.clock.Now()
	s.mu.Lock()
	if s.result != nil {
		s.mu.Unlock()
		return nil
	}
	s.result, s.over = pb.GenericResult_builder{Status: as}.Build(), now
	s.hidden = as == pb.GenericResult_GENERIC_STATUS_TERMINATED
	s.cut()
	all := s.execs
	s.mu.Unlock()
	err := s.Remove()
	for _, x := range all {
		<-x.over
	}
	return err
}

// shown is the result as the vendor tells it: a termination not at the first look.
func (s *sandbox) shown() *pb.GenericResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hidden {
		s.hidden = false
		return nil
	}
	return s.result
}

// taskNow is its task, which V2's has at the second look only.
func (s *sandbox) taskNow() *pb.SandboxGetTaskIdResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	switch {
	case s.result != nil:
		return pb.SandboxGetTaskIdResponse_builder{TaskResult: s.result}.Build()
	case s.looks == 1 && s.backend == 2:
		return &pb.SandboxGetTaskIdResponse{}
	}
	return pb.SandboxGetTaskIdResponse_builder{TaskId: &s.task}.Build()
}

// sever ends all streams that run now.
func (s *sandbox) sever() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut()
	if s.result == nil {
		s.streams, s.cut = context.WithCancel(context.Background())
	}
}

func (s *sandbox) life() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams
}
