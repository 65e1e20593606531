package docker

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Programs of ours need nothing of the image that they run beside: they are instructions in the file format of Linux.

// Where a program's parts are in its memory.
const (
	programBase = 0x10000
	programRoom = 0x10000000
	programHead = 64 + 2*56 // the file's header, and those of its segments
)

// machines are the architectures that programs are written for, by the numbers of the file format.
var machines = map[string]uint16{"amd64": 62, "arm64": 183}

// idleProgram is a program that waits until it is ended.
func idleProgram(arch string) ([]byte, error) {
	code := []byte{0xb8, 34, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xf7} // again: eax = pause; syscall; jump again
	if arch == "arm64" {                                      // again: ppoll(nothing, 0, no timeout, no mask); jump again
		code = words(0xd2800000, 0xd2800001, 0xd2800002, 0xd2800003, 0xd2800928, 0xd4000001, 0x17fffffa)
	}
	return executable(arch, nil, code, 8)
}

// executable is a file with data and code, and room that is empty when it starts.
func executable(arch string, data, code []byte, room int) ([]byte, error) {
	machine, known := machines[arch]
	if !known {
		return nil, extensions.Errorf(extensions.KindUnsupported, "an engine on %s has no closed network for services",
			extensions.Clean(arch, 40)).
			WithRemedy("use an engine on amd64 or arm64, leave the services out, or set network.default to allow")
	}
	entry, size := uint64(programBase+programHead+len(data)), uint64(programHead+len(data)+len(code))
	out := []byte("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	for _, part := range []any{
		uint16(2), machine, uint32(1), entry, uint64(64), uint64(0), uint32(0), // executable; its entry, its segments
		uint16(64), uint16(56), uint16(2), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(5), uint64(0), uint64(programBase), uint64(programBase), size, size, uint64(programBase), // to read and run
		uint32(1), uint32(6), uint64(0), uint64(programRoom), uint64(programRoom), uint64(0), uint64(room), uint64(programBase),
	} {
		var err error
		if out, err = binary.Append(out, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("a program for the engine: %w", err)
		}
	}
	return append(append(out, data...), code...), nil
}

func words(all ...uint32) (out []byte) {
	for _, w := range all {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// sysCall is a system call of Linux, by its number on each architecture.
type sysCall struct{ amd64, arm64 uint64 }

var (
	sysRead       = sysCall{0, 63}
	sysWrite      = sysCall{1, 64}
	sysSleep      = sysCall{35, 101}
	sysSocket     = sysCall{41, 198}
	sysConnect    = sysCall{42, 203}
	sysSend       = sysCall{44, 206}
	sysReceive    = sysCall{45, 207}
	sysSetOption  = sysCall{54, 208}
	sysOpenAt     = sysCall{257, 56}
	sysExit       = sysCall{231, 94}
	argsOfSysCall = 6
)

// listing is a program without branches: calls one after the other, with arguments that are known before or are what
// an earlier call returned. It ends by writing what each call returned, in eight bytes, and the room that was read into.
type listing struct {
	calls []listed
	room  int // beside the results
}

type listed struct {
	sysCall
	args []any
}

// An argument is an int, or one of these.
type (
	returned int    // what the call of this number returned
	content  []byte // the address of these bytes
	roomAt   int    // an address in the room
)

func (l *listing) call(c sysCall, args ...any) returned {
	l.calls = append(l.calls, listed{c, args})
	return returned(len(l.calls) - 1)
}

// reserve makes room for what is read.
func (l *listing) reserve(size int) roomAt {
	l.room += size
	return roomAt(l.room - size)
}

// program writes the listing for an architecture.
func (l *listing) program(arch string) ([]byte, error) {
	results := 8 * (len(l.calls) + 2) // the last two are those of the end
	room := results + l.room
	whole := listing{calls: append(l.calls[:len(l.calls):len(l.calls)], listed{sysWrite, []any{1, roomAt(-results), room}},
		listed{sysExit, []any{0}})}
	var data, code []byte
	for i, c := range whole.calls {
		for r, arg := range c.args {
			switch arg := arg.(type) {
			case int:
				code = append(code, set(arch, r, uint64(arg))...)
			case roomAt:
				code = append(code, set(arch, r, uint64(programRoom+results+int(arg)))...)
			case returned:
				code = append(code, fetch(arch, r, programRoom+8*uint64(arg))...)
			case content:
				code = append(code, set(arch, r, uint64(programBase+programHead+len(data)))...)
				data = append(data, arg...)
			}
		}
		code = append(code, enter(arch, c.sysCall, programRoom+8*uint64(i))...)
	}
	return executable(arch, append(data, make([]byte, -len(data)&7)...), code, room) // instructions are aligned
}

// set puts a value into the register of an argument, or of the call's number, which comes after them.
func set(arch string, register int, value uint64) []byte {
	if arch == "amd64" { // mov register, value
		code := [][]byte{{0x48, 0xbf}, {0x48, 0xbe}, {0x48, 0xba}, {0x49, 0xba}, {0x49, 0xb8}, {0x49, 0xb9}, {0x48, 0xb8}}[register]
		return binary.LittleEndian.AppendUint64(code, value)
	}
	if register == argsOfSysCall {
		register = 8
	}
	return move(uint32(register), value)
}

// move is movz and movk of arm64, of 16 bits each.
func move(register uint32, value uint64) []byte {
	part := func(i int) uint32 { return uint32(i)<<21 | uint32(value>>(16*i)&0xffff)<<5 | register }
	return words(0xd2800000|part(0), 0xf2800000|part(1), 0xf2800000|part(2), 0xf2800000|part(3))
}

// fetch puts what is at an address into the register of an argument.
func fetch(arch string, register int, at uint64) []byte {
	if arch == "amd64" { // mov rax, [at]; mov register, rax
		code := binary.LittleEndian.AppendUint64([]byte{0x48, 0xa1}, at)
		return append(code, [][]byte{{0x48, 0x89, 0xc7}, {0x48, 0x89, 0xc6}, {0x48, 0x89, 0xc2}, {0x49, 0x89, 0xc2}, {0x49, 0x89, 0xc0},
			{0x49, 0x89, 0xc1}}[register]...)
	}
	return append(move(9, at), words(0xf9400120|uint32(register))...) // ldr register, [x9]
}

// enter makes a call whose arguments are set, and stores what it returns.
func enter(arch string, c sysCall, at uint64) []byte {
	if arch == "amd64" { // syscall; mov [at], rax
		code := append(set(arch, argsOfSysCall, c.amd64), 0x0f, 0x05, 0x48, 0xa3)
		return binary.LittleEndian.AppendUint64(code, at)
	}
	code := append(set(arch, argsOfSysCall, c.arm64), words(0xd4000001)...)
	return append(append(code, move(9, at)...), words(0xf9000120)...) // str x0, [x9]
}
