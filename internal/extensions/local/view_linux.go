package local

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/walls"
)

// etcViews are the parts of /etc that programs need and that hold no secret: certificates, the dynamic
// linker's cache, the links of alternatives, time.
var etcViews = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies", "/etc/java-17-openjdk",
	"/etc/java-21-openjdk", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic",
	"/etc/mime.types", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/pki/tls/openssl.cnf", "/etc/protocols", "/etc/services",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
}

// views lists what the sandbox sees of the host: /usr and the root's links to it, the harmless parts of /etc,
// and what the configuration exposes.
func (s settings) views() ([]walls.View, []walls.Link) {
	list := []walls.View{{Source: "/usr", Dest: "/usr"}}
	var links []walls.Link
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(name)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			if to, err := os.Readlink(name); err == nil {
				links = append(links, walls.Link{Target: to, Name: name})
			}
		case info.IsDir():
			list = append(list, walls.View{Source: name, Dest: name})
		}
	}
	for _, name := range etcViews {
		if to, err := filepath.EvalSymlinks(name); err == nil &&
			(to == name || strings.HasPrefix(to, "/usr/") || strings.HasPrefix(to, "/etc/")) {
			list = append(list, walls.View{Source: to, Dest: name})
		}
	}
	for _, name := range s.expose {
		list = append(list, walls.View{Source: name, Dest: name})
	}
	return list, links
}

const passwd = `root:x:0:0:root:/root:/usr/sbin/nologin
sandbox:x:1000:1000:sandbox:` + walls.Home + `:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`

const groupFile = "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"

// etcFiles are generated: a sandbox sees none of the host's users, names or servers without the host's
// network.
func etcFiles(hostname string, hostNetwork bool) []walls.File {
	hosts := "127.0.0.1 localhost " + hostname + "\n::1 localhost ip6-localhost\n"
	resolv := "# no network\n"
	if hostNetwork {
		if b, err := os.ReadFile("/etc/resolv.conf"); err == nil {
			resolv = string(b)
		}
		if b, err := os.ReadFile("/etc/hosts"); err == nil {
			hosts = string(b)
		}
	}
	return []walls.File{
		{Name: "/etc/passwd", Text: passwd}, {Name: "/etc/group", Text: groupFile},
		{Name: "/etc/hosts", Text: hosts}, {Name: "/etc/hostname", Text: hostname + "\n"}, {Name: "/etc/resolv.conf", Text: resolv},
		{Name: "/etc/nsswitch.conf", Text: "passwd: files\ngroup: files\nhosts: files dns\n"},
	}
}
