// Package walls turns a process in fresh namespaces into the inside of a sandbox: root, devices, network,
// limits, rights and filter, in this order, on one thread. Then only the init remains to be started.
package walls

// Paths inside.
const (
	Workspace = "/workspace"
	Home      = "/home/sandbox"
	UID       = 1000
	GID       = 1000
)

// View is a host file or folder shown read-only.
type View struct {
	Source string `json:"source"`
	Dest   string `json:"dest"`
}

// Link is a symbolic link in the root.
type Link struct {
	Target string `json:"target"`
	Name   string `json:"name"`
}

// File is a generated file of /etc.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Limit is one resource limit, soft and hard alike.
type Limit struct {
	Resource int    `json:"resource"`
	Value    uint64 `json:"value"`
}

// Config holds everything the walls are built from; it holds no secret.
type Config struct {
	// Built is set if bubblewrap has done the mounts, rights and filter.
	Built bool `json:"built,omitempty"`
	// Exe is where our own executable lies, if the init must not run it from there; see GuardExe.
	Exe       string  `json:"exe,omitempty"`
	Hostname  string  `json:"hostname,omitempty"`
	OwnNet    bool    `json:"own_net,omitempty"`
	Views     []View  `json:"views,omitempty"`
	Links     []Link  `json:"links,omitempty"`
	Files     []File  `json:"files,omitempty"`
	DiskBytes int64   `json:"disk_bytes,omitempty"`
	Inodes    int64   `json:"inodes,omitempty"`
	Access    string  `json:"access"` // none | ro | rw
	Limits    []Limit `json:"limits,omitempty"`
	Filter    []byte  `json:"filter,omitempty"` // struct sock_filter[], native order
	CPUs      []int   `json:"cpus,omitempty"`   // pinned to these; empty = all
}

// Writable lists the folders that programs may write to.
func (c Config) Writable() []string {
	list := []string{"/tmp", "/run", "/dev/shm", Home}
	if c.Access == "rw" {
		list = append(list, Workspace)
	}
	return list
}
