package command

import (
	"context"
	"encoding/json"
	"path"
	"strconv"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const handleVersion = 1

// labelDigest is what the program was when it made the sandbox, beside the engine's labels.
const labelDigest = "sandboxer.command-digest"

// The bounds of what a program may call a sandbox and its workspace, in bytes.
const (
	maxRef     = 256
	maxWorkdir = 1024
)

// data is what a handle adds.
type data struct {
	Digest  string `json:"digest"`
	Workdir string `json:"workdir,omitempty"`
}

// handle points to what the program told of; ref is empty while only our id is known.
func handle(id extensions.ID, ref, digest, workdir string) extensions.Handle {
	text, _ := json.Marshal(data{Digest: digest, Workdir: workdir}) // strings cannot fail
	return extensions.Handle{Extension: Handler, Version: handleVersion, ID: id, Ref: ref, Data: text}
}

func parseHandle(h extensions.Handle) (d data, err error) {
	if err := h.Check(Handler, handleVersion); err != nil {
		return d, err
	}
	if err := json.Unmarshal(h.Data, &d); err != nil {
		return d, extensions.Errorf(extensions.KindInvalid, "the handle's data cannot be read: %w", err)
	}
	return d, nil
}

// whole returns h with the program's name of the sandbox, looked up by our id if a lost answer left it without.
func (b *backend) whole(ctx context.Context, h extensions.Handle) (extensions.Handle, data, error) {
	d, err := parseHandle(h)
	if err != nil || h.Ref != "" {
		return h, d, err
	}
	found, err := b.find(ctx, h.ID)
	if err != nil {
		return h, d, err
	}
	d, err = parseHandle(found)
	return found, d, err
}

// check refuses what a program says of a sandbox unless it is whole and of this account.
func (s sandbox) check(b *backend, id extensions.ID) error {
	labeled, err := extensions.ParseID(s.Labels[extensions.LabelID])
	switch {
	case err != nil || id != "" && labeled != id:
		return unknown("its label %s is %q", extensions.LabelID, extensions.Clean(s.Labels[extensions.LabelID], 40))
	case s.Labels[extensions.LabelAccount] != b.account:
		return unknown("it is of the account %q", extensions.Clean(s.Labels[extensions.LabelAccount], 80))
	case s.Ref == "" || len(s.Ref) > maxRef || !extensions.OneLine(s.Ref):
		return unknown("its ref %q is not a name", extensions.Clean(s.Ref, 80))
	case s.Workdir == "" && b.desc.Has(extensions.PowerExec):
		return unknown("it has no workdir, where commands begin")
	case s.Workdir != "" && !isWorkdir(s.Workdir):
		return unknown("its workdir %q is not a clean absolute path", extensions.Clean(s.Workdir, 80))
	case !extensions.OneLine(s.Labels[labelDigest]) || len(s.Labels[labelDigest]) > maxRef:
		return unknown("its label %s is not the one it got", labelDigest)
	}
	switch s.Phase {
	case extensions.PhaseProvisioning, extensions.PhaseReady, extensions.PhaseExpired, extensions.PhaseTerminated, extensions.PhaseFailed:
		return nil
	}
	return unknown("its phase is %q", extensions.Clean(string(s.Phase), 40))
}

func isWorkdir(at string) bool {
	return path.IsAbs(at) && path.Clean(at) == at && len(at) <= maxWorkdir && extensions.OneLine(at)
}

// handle is the handle of what the program tells of, which check accepted.
func (s sandbox) handle() extensions.Handle {
	return handle(extensions.ID(s.Labels[extensions.LabelID]), s.Ref, s.Labels[labelDigest], s.Workdir)
}

// observe is what the program says, which check accepted. current is what the program is now.
func (s sandbox) observe(current string) extensions.Observation {
	generation, _ := strconv.ParseInt(s.Labels[extensions.LabelGeneration], 10, 64)
	h := s.handle()
	o := extensions.Observation{ID: h.ID, Handle: h, Phase: s.Phase, Generation: generation, Reason: extensions.Clean(s.Reason, 300),
		StartedAt: s.StartedAt, EndedAt: s.EndedAt, Deadline: s.Deadline,
		Allocated: extensions.Resources{CPU: s.CPU, MemoryMB: s.MemoryMB, DiskMB: s.DiskMB}}
	if s.Phase == extensions.PhaseReady {
		o.Reachability = extensions.Reachability{WorkDir: s.Workdir}
		if made := s.Labels[labelDigest]; current != "" && made != current && o.Reason == "" {
			o.Reason = "the program of its extension has changed since it was created: then " + made + ", now " + current
		}
	}
	return o
}
