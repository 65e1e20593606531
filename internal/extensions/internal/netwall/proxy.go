package netwall

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// ProxyPort is where the proxy listens.
const ProxyPort = 3128

// ProxyEnv points programs at the proxy of that host name, except for the sandbox's own services. Both
// spellings are in use.
func ProxyEnv(name string, services []string) map[string]string {
	url := "http://" + net.JoinHostPort(name, strconv.Itoa(ProxyPort))
	direct := strings.Join(append([]string{"localhost", "127.0.0.1"}, services...), ",")
	return map[string]string{
		"HTTP_PROXY": url, "http_proxy": url, "HTTPS_PROXY": url, "https_proxy": url,
		"NO_PROXY": direct, "no_proxy": direct,
	}
}

// neverAllowed lists private networks, where names may not lead. Otherwise whoever controls a name's records
// could reach them through it.
var neverAllowed = []string{
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2002::/16", "fc00::/7", "fe80::/10", "ff00::/8",
}

// SquidConfig returns the configuration of a proxy that passes what the rules name and listens on ProxyPort; own
// are the host's addresses, where no rule leads. It refuses unlisted names before looking them up, so that a
// lookup carries nothing out.
func SquidConfig(rules []extensions.EgressRule, own string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("http_port %d", ProxyPort)
	line("acl own dst %s", strings.Join(neverAllowed, " "))
	line("acl host dst %s", own)
	line("acl metadata dst 169.254.0.0/16")
	line(`acl literal dstdom_regex -n ^[0-9.]+$$ [:\[]`)
	line("acl tunnel method CONNECT")
	line("acl plain proto HTTP")
	line("http_access deny !tunnel !plain")
	var names []string
	for i, r := range rules {
		if r.Port != 0 {
			line("acl port%d port %d", i, r.Port)
		} else {
			line("acl port%d port 1-65535", i)
		}
		if r.Domain == "" {
			line("acl to%d dst %s", i, r.CIDR)
			line("http_access allow literal port%d to%d !metadata !host", i, i)
			continue
		}
		name, below := strings.CutPrefix(r.Domain, "*.")
		start := "^"
		if below {
			start = `^[^/]+\.`
		}
		line("acl name%d dstdom_regex -n -i %s%s$$", i, start, strings.ReplaceAll(name, ".", `\.`))
		names = append(names, fmt.Sprintf("http_access allow name%d port%d !literal !own !host", i, i))
	}
	for _, n := range names {
		line("%s", n)
	}
	b.WriteString(squidFixed)
	return b.String()
}

// squidFixed keeps nothing, tells nobody who asked, and writes to no disk. It holds a name's addresses long
// enough that the proxy connects to the one it judged.
const squidFixed = `http_access deny all
icp_access deny all
htcp_access deny all
cache deny all
cache_mem 0 MB
maximum_object_size_in_memory 0 KB
memory_pools off
max_filedescriptors 1024
negative_dns_ttl 5 minutes
positive_dns_ttl 1 hour
dns_defnames off
connect_timeout 15 seconds
forward_timeout 20 seconds
shutdown_lifetime 1 second
forwarded_for delete
via off
pid_filename none
coredump_dir none
cache_log stdio:/dev/stderr
access_log none
logfile_rotate 0
netdb_filename none
pinger_enable off
visible_hostname sandboxer-proxy
`
