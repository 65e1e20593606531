//go:build linux

package local

import (
	"encoding/binary"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// TestASizeIsJudgedInFull runs the rules of a machine without a memory cgroup
// in a machine of BPF's own: a size is as long as a register.
func TestASizeIsJudgedInFull(t *testing.T) {
	t.Parallel()
	for _, info := range []*arch.Info{arch.X86_64, arch.AARCH64} {
		program := append(judge(info, filterOptions{noMemory: true}), bpf.RetConstant{Val: 0})
		vm, err := bpf.NewVM(program)
		must(t, err)
		for size, want := range map[uint64]uint32{0: 0, 64 << 10: 0, 64<<10 + 1: uint32(unix.EPERM), 1 << 32: uint32(unix.EPERM),
			1<<63 | 4096: uint32(unix.EPERM)} {
			data := make([]byte, 64) // struct seccomp_data, in the byte order of bpf.VM
			binary.BigEndian.PutUint32(data[numberOffset:], uint32(info.SyscallNames["shmget"]))
			binary.BigEndian.PutUint32(data[arguments+8:], uint32(size))
			binary.BigEndian.PutUint32(data[arguments+12:], uint32(size>>32))
			verdict := uint32(seccomp.ActionAllow)
			if want != 0 {
				verdict = uint32(seccomp.ActionErrno) | want
			}
			if got, err := vm.Run(data); err != nil || uint32(got) != verdict {
				t.Errorf("%s: shmget of %#x bytes: %#x, %v, want %#x", info.Name, size, got, err, verdict)
			}
		}
	}
}
