package local

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filterOptions are what a filter depends on.
type filterOptions struct {
	pinned   bool // the CPU limit is an affinity, which the program may not change
	noMemory bool // no cgroup counts memory, so none may be taken outside the limits
}

var filters sync.Map // filterOptions -> []byte

// filter returns the system call filter as struct sock_filter[].
func filter(o filterOptions) ([]byte, error) {
	if b, ok := filters.Load(o); ok {
		return b.([]byte), nil
	}
	b, err := assemble(o)
	if err == nil {
		filters.Store(o, b)
	}
	return b, err
}

// unknown stands for the answer to calls in neither list until the program is assembled: the assembler knows
// no error but EPERM, and libraries fall back to older calls only on ENOSYS, as on a kernel without the call.
const unknown = seccomp.ActionTrap

func assemble(o filterOptions) ([]byte, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	known := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { _, ok := info.SyscallNames[n]; return !ok })
	}
	refused := slices.Clone(refusedCalls)
	if o.pinned {
		refused = append(refused, "sched_setaffinity")
	}
	if o.noMemory {
		refused = append(refused, "memfd_create", "mlockall")
	}
	allowed := slices.DeleteFunc(slices.Clone(allowedCalls), func(n string) bool { return slices.Contains(refused, n) })
	policy := seccomp.Policy{
		DefaultAction: unknown,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionErrno, Names: known(refused)},
			{Action: seccomp.ActionAllow, Names: known(allowed)},
		},
	}
	program, err := policy.Assemble()
	if err != nil {
		return nil, err
	}
	for i, in := range program {
		if r, ok := in.(bpf.RetConstant); ok && r.Val == uint32(unknown) {
			program[i] = bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.ENOSYS)}
		}
	}
	raw, err := bpf.Assemble(slices.Concat(killForeign(uint32(info.ID)), judge(info, o), program))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, i := range raw {
		_ = binary.Write(&b, binary.NativeEndian, i)
	}
	return b.Bytes(), nil
}

// killForeign kills programs of another architecture, whose calls have other numbers.
func killForeign(id uint32) []bpf.Instruction {
	const archOffset = 4
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: id, SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
	}
}
