package hosttest

// Option changes how SSHD starts its server.
type Option func(*settings)

type settings struct {
	listen  string
	port    int
	user    string
	keys    []string
	hostKey *Key
	config  []string
	shell   string
	diskMB  int
}

// WithConfig adds lines to sshd_config. They come first, so they override SSHD's own; "Match" and what
// follows it goes to the end. %DIR% stands for the server's private folder (Server.Dir).
func WithConfig(lines ...string) Option {
	return func(s *settings) { s.config = append(s.config, lines...) }
}

// WithHostKeyTypes sets the server's host keys: ed25519, ecdsa, rsa. The default is ed25519 and ecdsa. The
// servers of a process share keys.
func WithHostKeyTypes(kinds ...string) Option { return func(s *settings) { s.keys = kinds } }

// WithHostKey gives the server this key as its only host key.
func WithHostKey(k Key) Option { return func(s *settings) { s.hostKey = &k } }

// WithListen sets the address, such as "[::1]"; the default is 127.0.0.1.
func WithListen(addr string) Option { return func(s *settings) { s.listen = addr } }

// WithPort asks for a port, such as that of a stopped server. The default is a free one.
func WithPort(port int) Option { return func(s *settings) { s.port = port } }

// WithShell runs sessions under this login shell: "/bin/dash", "/bin/busybox sh". The shell gets the command
// line by -c, as from sshd.
func WithShell(shell string) Option { return func(s *settings) { s.shell = shell } }

// WithUser lets this user of the machine in, beside the one who runs the test, and gives the sessions' home
// folder to that user. It needs root.
func WithUser(name string) Option { return func(s *settings) { s.user = name } }

// WithDisk puts the sessions' home on a file system of this many MiB, so that a test can fill it. It needs
// root.
func WithDisk(mb int) Option { return func(s *settings) { s.diskMB = mb } }
