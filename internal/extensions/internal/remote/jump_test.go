package remote

import (
	"fmt"
	"net"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func TestSeveralJumpHosts(t *testing.T) {
	t.Parallel()
	one, two, three, s := sshd(t), sshd(t), sshd(t), sshd(t)
	u := newMe(t)
	// Each has its own key, and its own user's key.
	ids := map[*hosttest.Server]hosttest.Key{}
	hop := func(s *hosttest.Server) extensions.SSH {
		key := hosttest.NewKey(t, "ed25519")
		ids[s] = key
		path := u.file(t, fmt.Sprint("id", s.Port), "")
		key.Write(t, path)
		write(t, s.Dir+"/authorized_keys", key.Line+"\n")
		h := at(s)
		h.HostKey, h.Identity = s.HostKeyLine, &extensions.SSHIdentity{PrivateKeyFile: path}
		return h
	}
	h := hop(s)
	h.Jump = []extensions.SSH{hop(one), hop(two), hop(three)}
	u.mustDial(t, h)
	for _, server := range []*hosttest.Server{one, two, three, s} {
		if n := server.Connections(); n != 1 {
			t.Errorf("there were %d connections to %s", n, server.Addr)
		}
	}
	write(t, two.Dir+"/authorized_keys", "\n")
	u.fails(t, h, extensions.KindUnauthorized, "jump host", fmt.Sprint(two.Port), fingerprint(ids[two].Signer.PublicKey()))
}

func TestJumpHostThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	j := keyed(s)
	j.HostKey = s.HostKeyLine
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := int64(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	h := extensions.SSH{Address: "127.0.0.1", Port: port, User: "x", Jump: []extensions.SSH{j}}
	u.fails(t, h, extensions.KindUnreachable, "jump host", "cannot connect to", "127.0.0.1")
	closed := sshd(t, hosttest.WithConfig("AllowTcpForwarding no"))
	h.Jump[0] = keyed(closed)
	h.Jump[0].HostKey = closed.HostKeyLine
	u.fails(t, h, extensions.KindUnauthorized, "does not allow", "AllowTcpForwarding")
}

func TestDestination(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]extensions.SSH{
		"host":                    {Address: "host"},
		"me@host":                 {Address: "host", User: "me"},
		"me@10.0.0.1":             {Address: "10.0.0.1", User: "me", Port: 22},
		"ssh://me@host:2222":      {Address: "host", User: "me", Port: 2222},
		"ssh://host:2222":         {Address: "host", Port: 2222},
		"me@::1":                  {Address: "::1", User: "me"},
		"ssh://me@[::1]:2222":     {Address: "[::1]", User: "me", Port: 2222},
		"ssh://[fe80::1%eth0]:23": {Address: "fe80::1%eth0", Port: 23},
		"box":                     {Alias: "box"},
		"me@box":                  {Alias: "box", User: "me"},
		"ssh://box:22":            {Alias: "box", Port: 22},
	} {
		if got := destination(s); got != want {
			t.Errorf("destination(%+v) = %q, want %q", s, got, want)
		}
	}
}
