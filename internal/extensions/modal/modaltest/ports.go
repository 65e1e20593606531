package modaltest

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
)

func (p plane) connect(in *pb.SandboxCreateConnectTokenRequest, backend int) (*pb.SandboxCreateConnectTokenResponse, error) {
	s, err := p.the(in.GetSandboxId(), backend)
	if err != nil {
		return nil, err
	}
	port := uint32(8080)
	if in.HasPort() {
		port = in.GetPort()
	}
	address := p.v.ports.URL + "/" + s.id + "/" + strconv.Itoa(int(port))
	return pb.SandboxCreateConnectTokenResponse_builder{Url: address, Token: s.connect}.Build(), nil
}

// SandboxCreateConnectToken implements pb.ModalClientServer.
func (p plane) SandboxCreateConnectToken(_ context.Context,
	in *pb.SandboxCreateConnectTokenRequest) (*pb.SandboxCreateConnectTokenResponse, error) {
	return p.connect(in, 1)
}

// SandboxCreateConnectTokenV2 implements pb.ModalClientServer.
func (p plane) SandboxCreateConnectTokenV2(_ context.Context,
	in *pb.SandboxCreateConnectTokenRequest) (*pb.SandboxCreateConnectTokenResponse, error) {
	return p.connect(in, 2)
}

// port lets who has a sandbox's connect token through to what listens for the port.
func (v *Vendor) port(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) < 3 {
		http.NotFound(w, r)
		return
	}
	s, err := v.live(parts[1])
	if err != nil || !s.lives() || r.Header.Get("Authorization") != "Bearer "+s.connect {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	port, _ := strconv.Atoi(parts[2])
	v.mu.Lock()
	to := v.listeners[port]
	v.mu.Unlock()
	httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to}).ServeHTTP(w, r)
}
