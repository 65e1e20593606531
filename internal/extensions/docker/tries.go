package docker

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// What a container behind default deny tries, as the scripts of netwall do: all that must not answer, and its peer, which
// must. A container's interface is eth0.

// Numbers of Linux that all architectures share.
const (
	familyFour, familySix, familyFrames = 2, 10, 17
	kindStream, kindDatagram, kindRaw   = 1, 2, 3
	kindNonBlocking                     = 0x800
	protocolICMP                        = 1
	optionsOfSockets                    = 1
	optionNoRoutes, optionBroadcast     = 5, 6
	optionInterface                     = 25
	withoutWaiting                      = 0x40
	currentFolder                       = -100

	errConnected = -106
	errRefused   = -111
)

const (
	tryTime   = 500 * time.Millisecond // until which an answer counts
	fileSize  = 8 << 10                // of a file that is read, in bytes
	replySize = 512
)

// outside are the addresses that a container tries beside those of its engine.
var outside = []netip.Addr{netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("1.1.1.1")}

var outsideSix = []netip.Addr{netip.MustParseAddr("fe80::1"), netip.MustParseAddr("ff02::1"), netip.MustParseAddr("2606:4700:4700::1111")}

// trial is a program that tries, and how its results are read.
type trial struct {
	listing
	judges []func(found) string // "" = nothing answered
	looks  []func()             // list the calls that look for answers
}

// found is what a trial's program wrote.
type found struct{ results, room []byte }

func (f found) of(c returned) int64 { return int64(binary.LittleEndian.Uint64(f.results[8*c:])) }

// read is what a call has read into the room.
func (f found) read(c returned, at roomAt) []byte { return f.room[at:][:max(f.of(c), 0)] }

// newTrial lists the attempts of a container with a peer; none of the addresses must answer.
func newTrial(peer netip.Addr, addresses []netip.Addr) *trial {
	t := &trial{}
	control := t.socket(familyFour, kindStream, 0)
	reached := t.connect(control, socketAddress(peer, 9)) // a peer without a server refuses
	t.judges = append(t.judges, func(f found) string {
		if r := f.of(reached); r == 0 || r == errRefused {
			return ""
		}
		return fmt.Sprintf("control failed: the peer did not answer (error %d)", -f.of(reached))
	})
	query := dnsQuery("proof", "example", "org")
	for _, at := range slices.Concat(addresses, outside) {
		for _, port := range []uint16{22, 53} {
			t.tcp(at, port, false)
			t.udp(at, port, false, query)
		}
		t.tcp(at, 22, true)
		t.udp(at, 9, true, []byte("x"))
		t.ask(at, protocolICMP, fmt.Sprint("ICMP ", at), 0, []byte{8, 0, 0, 0, 0, 1, 0, 1}, nil)
	}
	for _, at := range []string{"255.255.255.255", "224.0.0.1"} {
		t.udp(netip.MustParseAddr(at), 9, true, []byte("x"))
	}
	for _, at := range outsideSix {
		t.six(at)
	}
	t.names(query)
	for _, s := range [][3]int{{familyFour, kindRaw, protocolICMP}, {familyFrames, kindRaw, 0x300}, {familyFrames, kindDatagram, 0x300}} {
		made := t.call(sysSocket, s[0], s[1], s[2])
		t.judges = append(t.judges, func(f found) string {
			return heard(f.of(made) >= 0, "a raw socket of family %d was given", s[0])
		})
	}
	t.call(sysSleep, content(words(0, 0, uint32(tryTime), 0)), 0)
	for _, look := range t.looks {
		look()
	}
	t.neighbors(peer)
	t.addressesOfSix()
	return t
}

func heard(did bool, format string, args ...any) string {
	if !did {
		return ""
	}
	return "answered " + fmt.Sprintf(format, args...)
}

// sleeper is a program that ends after a time.
func sleeper(d time.Duration) func(arch string) ([]byte, error) {
	return func(arch string) ([]byte, error) {
		l := &listing{}
		l.call(sysSleep, content(words(uint32(d/time.Second), 0, 0, 0)), 0)
		return l.program(arch)
	}
}

func (t *trial) socket(family, kind, protocol int) returned {
	return t.call(sysSocket, family, kind, protocol)
}

func (t *trial) connect(s returned, to content) returned { return t.call(sysConnect, s, to, len(to)) }

// past makes a socket send by the interface, whatever the routes say.
func (t *trial) past(s returned) {
	t.call(sysSetOption, s, optionsOfSockets, optionInterface, content("eth0\x00"), 5)
	t.call(sysSetOption, s, optionsOfSockets, optionNoRoutes, content(words(1)), 4)
}

func pastRoutes(near bool) string {
	if near {
		return " past the routes"
	}
	return ""
}

func (t *trial) tcp(at netip.Addr, port uint16, near bool) {
	s := t.socket(familyFour, kindStream|kindNonBlocking, 0)
	if near {
		t.past(s)
	}
	first := t.connect(s, socketAddress(at, port))
	t.looks = append(t.looks, func() {
		again := t.connect(s, socketAddress(at, port))
		t.judges = append(t.judges, func(f found) string {
			came := func(r int64) bool { return r == 0 || r == errConnected || r == errRefused }
			return heard(came(f.of(first)) || came(f.of(again)), "TCP %s port %d%s", at, port, pastRoutes(near))
		})
	})
}

func (t *trial) udp(at netip.Addr, port uint16, near bool, data []byte) {
	var prepare func(returned)
	if near {
		prepare = func(s returned) {
			t.call(sysSetOption, s, optionsOfSockets, optionBroadcast, content(words(1)), 4)
			t.past(s)
		}
	}
	t.ask(at, 0, fmt.Sprintf("UDP %s port %d%s", at, port, pastRoutes(near)), port, data, prepare)
}

// ask sends a datagram and looks whether any came back.
func (t *trial) ask(at netip.Addr, protocol int, what string, port uint16, data []byte, prepare func(returned)) {
	s := t.socket(familyFour, kindDatagram|kindNonBlocking, protocol)
	if prepare != nil {
		prepare(s)
	}
	t.connect(s, socketAddress(at, port))
	t.call(sysSend, s, content(data), len(data), 0, 0, 0)
	t.looks = append(t.looks, func() {
		got := t.call(sysReceive, s, 0, 0, withoutWaiting, 0, 0)
		t.judges = append(t.judges, func(f found) string { return heard(f.of(got) >= 0 || f.of(got) == errRefused, "%s", what) })
	})
}

// six counts what could be sent: without an address and a route, nothing can.
func (t *trial) six(at netip.Addr) {
	for _, kind := range []int{kindStream, kindDatagram} {
		s := t.socket(familySix, kind|kindNonBlocking, 0)
		if at.IsLinkLocalUnicast() || at.IsMulticast() {
			t.call(sysSetOption, s, optionsOfSockets, optionInterface, content("eth0\x00"), 5)
		}
		done := t.connect(s, socketAddress(at, 22))
		if kind == kindDatagram {
			done = t.call(sysSend, s, content("x"), 1, 0, 0, 0)
		}
		t.judges = append(t.judges, func(f found) string {
			return heard(f.of(done) >= 0 || f.of(done) == errRefused, "[%s], kind %d", at, kind)
		})
	}
}

// names asks the engine's own resolver for a name outside.
func (t *trial) names(query []byte) {
	s, reply := t.socket(familyFour, kindDatagram|kindNonBlocking, 0), t.reserve(replySize)
	t.connect(s, socketAddress(netip.MustParseAddr("127.0.0.11"), 53))
	t.call(sysSend, s, content(query), len(query), 0, 0, 0)
	t.looks = append(t.looks, func() {
		got := t.call(sysReceive, s, reply, replySize, withoutWaiting, 0, 0)
		t.judges = append(t.judges, func(f found) string {
			text := f.read(got, reply)
			return heard(len(text) > 3 && (text[3]&15 == 0 || text[3]&15 == 3), "DNS")
		})
	})
}

// lines passes each line of a file, in words, to judge, and what it says of one on.
func (t *trial) lines(file string, needed bool, judge func(words []string) string) {
	room := t.reserve(fileSize)
	opened := t.call(sysOpenAt, currentFolder, content(file+"\x00"), 0, 0)
	got := t.call(sysRead, opened, room, fileSize)
	t.judges = append(t.judges, func(f found) string {
		if needed && f.of(got) < 0 {
			return fmt.Sprintf("control failed: %s cannot be read (error %d)", file, -f.of(got))
		}
		var said string
		for line := range strings.Lines(string(f.read(got, room))) {
			if w := strings.Fields(line); said == "" && len(w) > 3 {
				said = judge(w)
			}
		}
		return said
	})
}

// neighbors looks whose frames came: the kernel notes who answers, also where a firewall then drops what is sent.
func (t *trial) neighbors(peer netip.Addr) {
	t.lines("/proc/net/arp", true, func(w []string) string {
		at, err := netip.ParseAddr(w[0])
		return heard(err == nil && at != peer && strings.TrimPrefix(w[2], "0x") != "0", "ARP %s", at)
	})
}

func (t *trial) addressesOfSix() {
	t.lines("/proc/net/if_inet6", false, func(w []string) string {
		return heard(w[len(w)-1] != "lo", "an IPv6 address on %s", w[len(w)-1])
	})
}

// judge says what is wrong with what the program wrote; nil if nothing answered and it could try.
func (t *trial) judge(out []byte) (wrong []string) {
	results := 8 * (len(t.calls) + 2)
	if len(out) != results+t.room {
		return []string{fmt.Sprintf("control failed: the program wrote %d bytes of %d", len(out), results+t.room)}
	}
	for _, judge := range t.judges {
		if said := judge(found{out[:results], out[results:]}); said != "" {
			wrong = append(wrong, said)
		}
	}
	return wrong
}

// socketAddress writes an address as the kernel takes it.
func socketAddress(at netip.Addr, port uint16) content {
	if at.Is4() {
		head := binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, familyFour), port)
		return slices.Concat(head, at.AsSlice(), make([]byte, 8))
	}
	head := binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, familySix), port)
	return slices.Concat(head, make([]byte, 4), at.AsSlice(), make([]byte, 4))
}

// dnsQuery asks for the address of a name, recursively.
func dnsQuery(labels ...string) []byte {
	out := []byte{0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, l := range labels {
		out = append(append(out, byte(len(l))), l...)
	}
	return append(out, 0, 0, 1, 0, 1)
}
