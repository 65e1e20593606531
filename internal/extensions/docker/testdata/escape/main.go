// Escape tries to leave a sandbox: its arguments are host:port pairs. Each line that it prints is a way out. A datagram that
// was sent by an interface against its routes is none yet: who hears it, knows.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

func main() {
	for name, family := range map[string]int{"AF_VSOCK": 40, "AF_PACKET": 17, "AF_BLUETOOTH": 31} {
		for _, kind := range []int{syscall.SOCK_STREAM, syscall.SOCK_DGRAM, syscall.SOCK_RAW} {
			if _, err := syscall.Socket(family, kind, 0); err == nil {
				fmt.Println("a socket of", name)
			}
		}
	}
	for name, family := range map[string]int{"IPv4": syscall.AF_INET, "IPv6": syscall.AF_INET6} {
		if _, err := syscall.Socket(family, syscall.SOCK_RAW, syscall.IPPROTO_ICMP); err == nil {
			fmt.Println("a raw socket of", name)
		}
	}
	by := []string{""}
	if links, err := net.Interfaces(); err == nil {
		for _, l := range links {
			if l.Flags&net.FlagLoopback == 0 {
				fmt.Println("an interface", l.Name)
				by = append(by, l.Name)
			}
		}
	}
	if _, err := net.LookupHost("example.org"); err == nil {
		fmt.Println("a name")
	}
	var all sync.WaitGroup
	for _, to := range os.Args[1:] {
		for _, network := range []string{"tcp", "udp"} {
			for _, link := range by {
				all.Go(func() { try(network, to, link) })
			}
		}
		host, _, _ := net.SplitHostPort(to)
		all.Go(func() { ping(host) })
	}
	for _, p := range []string{"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"} {
		if _, err := net.Dial("unix", p); err == nil {
			fmt.Println("the engine at", p)
		}
	}
	all.Wait()
}

// try sends to an address, by an interface unless it is "".
func try(network, to, link string) {
	d := net.Dialer{Timeout: 2 * time.Second, Control: func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_BROADCAST, 1)
			if link != "" {
				err = syscall.SetsockoptString(int(fd), syscall.SOL_SOCKET, syscall.SO_BINDTODEVICE, link)
			}
		})
		return err
	}}
	c, err := d.DialContext(context.Background(), network, to)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	for range 3 { // the first may wait in vain for the neighbor's address
		if _, err = c.Write([]byte("out")); err == nil && (network == "tcp" || link == "") {
			fmt.Println(network, to, link)
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// ping asks an address for an echo, as users without rights may on many machines.
func ping(to string) {
	ip := net.ParseIP(to).To4()
	if ip == nil {
		return
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP)
	if err != nil {
		return
	}
	defer func() { _ = syscall.Close(fd) }()
	_ = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Sec: 2})
	if syscall.Sendto(fd, []byte{8, 0, 0, 0, 0, 0, 0, 1}, 0, &syscall.SockaddrInet4{Addr: [4]byte(ip)}) != nil {
		return
	}
	if n, _, err := syscall.Recvfrom(fd, make([]byte, 100), 0); err == nil && n > 0 {
		fmt.Println("an echo of", to)
	}
}
