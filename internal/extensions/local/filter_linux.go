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
	pinned   bool // the CPUs a program may use are a limit, so it may not change them
	noMemory bool // no cgroup counts memory, so none may be taken outside of the limits
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

// unknown stands for the answer to calls in neither list until the program is
// assembled: the assembler knows no error but EPERM, and libraries fall back
// to older calls on ENOSYS only, as on a kernel without the call.
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
			{Action: seccomp.ActionAllow, Names: known(allowed), NamesWithCondtions: conditional(info, o)},
			{Action: seccomp.ActionErrno, Names: known([]string{"clone", "socket", "ioctl", "personality", "shmget"})},
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
	raw, err := bpf.Assemble(append(killForeign(uint32(info.ID)), program...))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, i := range raw {
		_ = binary.Write(&b, binary.NativeEndian, i)
	}
	return b.Bytes(), nil
}

// killForeign ends programs of another architecture, whose calls have other numbers.
func killForeign(id uint32) []bpf.Instruction {
	const archOffset = 4
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: id, SkipTrue: 1},
		bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)},
	}
}

// namespaceFlags are those of clone(2): mount, cgroup, uts, ipc, user, pid, net.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// conditional lists the calls that are allowed with some arguments only.
func conditional(info *arch.Info, o filterOptions) []seccomp.NameWithConditions {
	is := func(arg uint32, v uint64) seccomp.Condition {
		return seccomp.Condition{Argument: arg, Operation: seccomp.Equal, Value: v}
	}
	not := func(arg uint32, v uint64) seccomp.Condition {
		return seccomp.Condition{Argument: arg, Operation: seccomp.NotEqual, Value: v}
	}
	list := []seccomp.NameWithConditions{
		{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsNotSet, Value: namespaceFlags}}},
		{Name: "socket", Conditions: seccomp.ArgumentConditions{is(0, unix.AF_UNIX)}},
		{Name: "socket", Conditions: seccomp.ArgumentConditions{is(0, unix.AF_INET)}},
		{Name: "socket", Conditions: seccomp.ArgumentConditions{is(0, unix.AF_INET6)}},
		{Name: "socket", Conditions: seccomp.ArgumentConditions{is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)}},
		{Name: "ioctl", Conditions: seccomp.ArgumentConditions{not(1, unix.TIOCSTI), not(1, unix.TIOCLINUX)}},
	}
	// PER_LINUX, PER_LINUX32, UNAME26, and the question what is set.
	for _, v := range []uint64{0, 8, 0x20000, 0x20008, 0xffffffff} {
		list = append(list, seccomp.NameWithConditions{Name: "personality", Conditions: seccomp.ArgumentConditions{is(0, v)}})
	}
	shm := seccomp.Condition{Argument: 1, Operation: seccomp.LessOrEqual, Value: 1<<64 - 1}
	if o.noMemory {
		shm.Value = 64 << 10 // enough for the lock segment that PostgreSQL wants
	}
	list = append(list, seccomp.NameWithConditions{Name: "shmget", Conditions: seccomp.ArgumentConditions{shm}})
	return slices.DeleteFunc(list, func(n seccomp.NameWithConditions) bool { _, ok := info.SyscallNames[n.Name]; return !ok })
}
