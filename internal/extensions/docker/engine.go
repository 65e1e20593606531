package docker

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/remote"
)

// engine is a connection to one Docker engine.
type engine struct {
	*client.Client
	where string // for messages: an address, or the host's name
	over  *remote.Client

	mu   sync.Mutex
	info *system.Info

	ownersMu sync.Mutex
	owners   map[string]owner // by image and user
	lacking  map[string]bool  // images without a folder of our name

	proofMu sync.Mutex
	proofs  map[string]string // that default deny holds, by runtime; see proof.go
}

// connect prepares the connection and dials nothing.
func connect(s settings, cfg extensions.Config) (*engine, error) {
	if h := cfg.Host; h != nil && !h.Local {
		return connectSSH(s, *h)
	}
	address := s.endpoint
	if address == "" {
		address = os.Getenv(client.EnvOverrideHost)
		if err := checkEndpoint(client.EnvOverrideHost, address); err != nil {
			return nil, err
		}
	}
	if address == "" {
		address = findSocket()
	}
	u, err := client.ParseHostURL(address)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the address of the Docker engine cannot be used: %w", err)
	}
	var opts []client.Opt
	if u.Scheme == "tcp" {
		transport, err := secured(u, cfg.Credentials, s.endpoint == "")
		if err != nil {
			return nil, err
		}
		opts = append(opts, client.WithHTTPClient(&http.Client{Transport: transport, CheckRedirect: client.CheckRedirect}))
	}
	opts = append(opts, client.WithHost(address))
	if u.Scheme != "npipe" {
		opts = append(opts, client.WithDialContext(telling(address, func(ctx context.Context, network, addr string) (net.Conn, error) {
			if u.Scheme == "unix" {
				network, addr = u.Scheme, u.Host
			}
			return (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, network, addr)
		})))
	}
	return newEngine(address, nil, opts...)
}

// connectSSH reaches the engine's socket through the one connection to the host.
func connectSSH(s settings, h extensions.Host) (*engine, error) {
	over, err := remote.Open(h, remote.Options{DialTimeout: connectTimeout})
	if err != nil {
		return nil, err
	}
	where := "the host " + strconv.Quote(h.Name)
	dial := telling(where, func(ctx context.Context, _, _ string) (net.Conn, error) { return over.Dial(ctx, "unix", s.socket) })
	return newEngine(where, over, client.WithHost("unix://"+s.socket), client.WithDialContext(dial))
}

func newEngine(where string, over *remote.Client, opts ...client.Opt) (*engine, error) {
	c, err := client.New(append(opts, client.WithUserAgent("sandboxer"))...)
	if err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the address of the Docker engine cannot be used: %w", err)
	}
	return &engine{Client: c, where: where, over: over,
		owners: map[string]owner{}, lacking: map[string]bool{}, proofs: map[string]string{}}, nil
}

// findSocket returns the first of Docker's usual sockets that exists; the system's own if none does.
func findSocket() string {
	home, _ := os.UserHomeDir()
	for _, path := range []string{
		strings.TrimPrefix(client.DefaultDockerHost, "unix://"),
		filepath.Join(cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), "/run/user/"+strconv.Itoa(os.Getuid())), "docker.sock"), // rootless
		filepath.Join(home, ".docker/run/docker.sock"),                                                             // Docker Desktop
		filepath.Join(home, ".docker/desktop/docker.sock"),
	} {
		if _, err := os.Stat(path); err == nil && filepath.IsAbs(path) {
			return "unix://" + path
		}
	}
	return client.DefaultDockerHost
}

// secured returns a transport for a TCP address. Who may use the engine is root there, so only this machine's own
// loopback may do without TLS.
func secured(u *url.URL, given map[string]extensions.Secret, fromEnv bool) (*http.Transport, error) {
	pem := map[string]string{}
	for name, s := range given {
		pem[name] = s.Reveal()
	}
	if dir := os.Getenv(client.EnvOverrideCertPath); dir != "" && fromEnv && len(pem) == 0 {
		for _, name := range []string{"ca", "cert", "key"} {
			b, err := os.ReadFile(filepath.Join(dir, name+".pem"))
			if err != nil {
				return nil, extensions.Errorf(extensions.KindUnauthorized, "%s: %w", client.EnvOverrideCertPath, err)
			}
			pem[name] = string(b)
		}
	}
	t := &http.Transport{}
	if len(pem) == 0 {
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			return t, nil
		}
		return nil, extensions.Errorf(extensions.KindUnauthorized, "the Docker engine at %s needs TLS: its users are root there", u.Host).
			WithRemedy("set the credentials ca, cert and key of this extension, or use a sandboxer_host over SSH")
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	if pem["ca"] != "" {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(pem["ca"])) {
			return nil, badPEM("ca")
		}
	}
	if pem["cert"] != "" || pem["key"] != "" {
		pair, err := tls.X509KeyPair([]byte(pem["cert"]), []byte(pem["key"]))
		if err != nil {
			return nil, badPEM("cert or key")
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

func badPEM(name string) error {
	return extensions.Errorf(extensions.KindUnauthorized, "the credential %s is not a valid PEM text", name).
		WithRemedy("give the text of the .pem file, not its path")
}

// about returns what the engine says about itself, asked once.
func (e *engine) about(ctx context.Context) (system.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info != nil {
		return *e.info, nil
	}
	r, err := e.Info(ctx, client.InfoOptions{})
	if err != nil {
		return system.Info{}, asked(err)
	}
	e.info = &r.Info
	return r.Info, nil
}

// mapsRoot reports that root in a container is an unprivileged user of the host.
func mapsRoot(info system.Info) bool {
	for _, o := range info.SecurityOptions {
		if strings.Contains(o, "name=userns") || strings.Contains(o, "name=rootless") {
			return true
		}
	}
	return false
}

func (e *engine) close() error {
	err := e.Close()
	if e.over != nil {
		_ = e.over.Close()
	}
	return err
}

// discard ends and removes a container with the volumes that its image asked for. One that only takes a name has them too.
func (e *engine) discard(ctx context.Context, id string) error {
	_, err := e.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}
