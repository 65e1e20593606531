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

// WithConfig adds lines to sshd_config. They come first, so they win over
// what SSHD writes itself; "Match" and what follows it goes to the end.
// %DIR% stands for the server's private folder (Server.Dir).
func WithConfig(lines ...string) Option {
	return func(s *settings) { s.config = append(s.config, lines...) }
}

// WithHostKeyTypes names the host keys the server has: ed25519, ecdsa, rsa.
// The default is ed25519 and ecdsa. Keys are shared by the servers of a
// process.
func WithHostKeyTypes(kinds ...string) Option { return func(s *settings) { s.keys = kinds } }

// WithHostKey gives the server this key as its only host key.
func WithHostKey(k Key) Option { return func(s *settings) { s.hostKey = &k } }

// WithListen changes the address, such as "[::1]"; the default is 127.0.0.1.
func WithListen(addr string) Option { return func(s *settings) { s.listen = addr } }

// WithPort asks for one port, such as that of a server that was stopped. The
// default is a free one.
func WithPort(port int) Option { return func(s *settings) { s.port = port } }

// WithShell makes sessions run under this login shell: "/bin/dash",
// "/bin/busybox sh". It gets the command line as sshd would give it, by -c.
func WithShell(shell string) Option { return func(s *settings) { s.shell = shell } }

// WithUser lets this user of the machine in, beside the one who runs the
// test, and gives the sessions' home folder to that user. It needs root.
func WithUser(name string) Option { return func(s *settings) { s.user = name } }

// WithDisk puts the sessions' home on a file system of this many MiB, so
// that a test can fill it. It needs root.
func WithDisk(mb int) Option { return func(s *settings) { s.diskMB = mb } }
