package modaltest

import (
	"context"
	"net/http"
	"net/http/httptest"
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

func (p plane) tunnels(in *pb.SandboxGetTunnelsRequest, backend int) (*pb.SandboxGetTunnelsResponse, error) {
	s, err := p.the(in.GetSandboxId(), backend)
	if err != nil {
		return nil, err
	}
	out := pb.SandboxGetTunnelsResponse_builder{Result: pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_SUCCESS}.Build()}
	for _, spec := range s.asked.GetOpenPorts().GetPorts() {
		at, err := url.Parse(p.v.tunnel(s, spec.GetPort()).URL)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseUint(at.Port(), 10, 32)
		if err != nil {
			return nil, err
		}
		out.Tunnels = append(out.Tunnels, pb.TunnelData_builder{Host: at.Hostname(), Port: uint32(port), ContainerPort: spec.GetPort()}.Build())
	}
	return out.Build(), nil
}

// tunnel is what serves a port of a sandbox to everybody.
func (v *Vendor) tunnel(s *sandbox, port uint32) *httptest.Server {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := s.id + "/" + strconv.Itoa(int(port))
	if v.tunnels[of] == nil {
		v.tunnels[of] = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.lives() {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			v.reach(int(port), w, r)
		}))
	}
	return v.tunnels[of]
}

// Everybody is a client without a credential that trusts the certificates of tunnels.
func (v *Vendor) Everybody() *http.Client {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range v.tunnels {
		return t.Client() // each has the same certificate
	}
	return http.DefaultClient
}

// SandboxGetTunnels implements pb.ModalClientServer.
func (p plane) SandboxGetTunnels(_ context.Context, in *pb.SandboxGetTunnelsRequest) (*pb.SandboxGetTunnelsResponse, error) {
	return p.tunnels(in, 1)
}

// SandboxGetTunnelsV2 implements pb.ModalClientServer.
func (p plane) SandboxGetTunnelsV2(_ context.Context, in *pb.SandboxGetTunnelsRequest) (*pb.SandboxGetTunnelsResponse, error) {
	return p.tunnels(in, 2)
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
	v.reach(port, w, r)
}

// reach answers with what listens for a port inside.
func (v *Vendor) reach(port int, w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	to := v.listeners[port]
	v.mu.Unlock()
	httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to}).ServeHTTP(w, r)
}
