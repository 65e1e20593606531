package local

import (
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	seccomp "github.com/elastic/go-seccomp-bpf"
)

// test compares one 32-bit word of an argument.
type test struct {
	word uint32 // its offset in struct seccomp_data
	cond bpf.JumpTest
	val  uint32
}

// low compares the word of an argument that the kernel reads for an int parameter; it drops what a caller
// puts above. The policy assembler compares all 64 bits, so it cannot express these rules.
func low(arg, val uint32) test { return test{arguments + 8*arg, bpf.JumpEqual, val} }

func not(t test) test {
	t.cond = bpf.JumpNotEqual
	return t
}

const (
	numberOffset = 0  // of the call's number in struct seccomp_data
	arguments    = 16 // of the first argument, low word first on every processor we have
)

// judgedCall is allowed if all tests of one list hold, else it answers EPERM.
type judgedCall struct {
	name string
	any  [][]test
}

// namespaceFlags are clone(2)'s: mount, cgroup, uts, ipc, user, pid, net.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// judgedCalls are the calls allowed with some arguments only.
func judgedCalls(o filterOptions) []judgedCall {
	calls := []judgedCall{
		{"clone", [][]test{{{arguments, bpf.JumpBitsNotSet, namespaceFlags}}}},
		{"socket", [][]test{{low(0, unix.AF_UNIX)}, {low(0, unix.AF_INET)}, {low(0, unix.AF_INET6)},
			{low(0, unix.AF_NETLINK), low(2, unix.NETLINK_ROUTE)}}},
		{"socketpair", [][]test{{low(0, unix.AF_UNIX)}}},
		{"ioctl", [][]test{{not(low(1, unix.TIOCSTI)), not(low(1, unix.TIOCLINUX))}}},
		// PER_LINUX, PER_LINUX32, UNAME26, and the query of the current value.
		{"personality", [][]test{{low(0, 0)}, {low(0, 8)}, {low(0, 0x20000)}, {low(0, 0x20008)}, {low(0, 0xffffffff)}}},
		{"shmget", [][]test{{}}},
	}
	if o.noMemory {
		// The size is as long as a register. This much suffices for the lock segment that PostgreSQL wants.
		size := arguments + 8*uint32(1)
		calls[len(calls)-1].any = [][]test{{{size, bpf.JumpLessOrEqual, 64 << 10}, {size + 4, bpf.JumpEqual, 0}}}
	}
	return calls
}

// judge decides the judged calls; others pass through it.
func judge(info *arch.Info, o filterOptions) []bpf.Instruction {
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: numberOffset, Size: 4}}
	for _, c := range judgedCalls(o) {
		nr, ok := info.SyscallNames[c.name]
		if !ok {
			continue
		}
		var body []bpf.Instruction
		for _, all := range c.any {
			for i, t := range all {
				left := len(all) - i - 1 // tests, of two instructions each, and the verdict
				body = append(body, bpf.LoadAbsolute{Off: t.word, Size: 4}, bpf.JumpIf{Cond: t.cond, Val: t.val, SkipFalse: uint8(2*left + 1)})
			}
			body = append(body, bpf.RetConstant{Val: uint32(seccomp.ActionAllow)})
		}
		body = append(body, bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(unix.EPERM)})
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(nr), SkipFalse: uint8(len(body))})
		program = append(program, body...)
	}
	return program
}
