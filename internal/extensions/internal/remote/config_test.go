package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func TestAliasWithIncludeAndTwoJumpHosts(t *testing.T) {
	t.Parallel()
	one, two, s := sshd(t), sshd(t), sshd(t)
	u := newMe(t)
	for name, server := range map[string]*hosttest.Server{"one": one, "two": two, "box": s} {
		key := hosttest.NewKey(t, "ed25519")
		key.Write(t, filepath.Join(u.home, ".ssh", "key_"+name))
		write(t, server.Dir+"/authorized_keys", key.Line+"\n")
		u.file(t, "known_"+name, fmt.Sprintf("[%s]:%d %s\n", server.Address, server.Port, server.HostKeyLine))
	}
	if err := os.Mkdir(filepath.Join(u.home, ".ssh", "conf.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	u.file(t, "config", "Include conf.d/*.conf\nHost *\n  User "+s.User+"\n  IdentitiesOnly yes\n  IdentityFile ~/.ssh/key_%n\n  "+
		"UserKnownHostsFile ~/.ssh/known_%n\n  GlobalKnownHostsFile none\n")
	u.file(t, "conf.d/10-jump.conf", fmt.Sprintf("Host one\n HostName 127.0.0.1\n Port %d\nHost two\n\tHostName=127.0.0.1\n\tPort = %d\n",
		one.Port, two.Port))
	u.file(t, "conf.d/20-box.conf", fmt.Sprintf("Host box\n HostName \"127.0.0.1\"\n Port %d # not 22\n ProxyJump one,%s@two\n", s.Port,
		s.User))
	u.mustDial(t, extensions.SSH{Alias: "box"})
	for _, server := range []*hosttest.Server{one, two, s} {
		if server.Connections() != 1 {
			t.Errorf("%d connections to %s", server.Connections(), server.Addr)
		}
	}
	// The second one's key is checked by its own entry.
	u.file(t, "known_two", fmt.Sprintf("[%s]:%d %s\n", two.Address, two.Port, hosttest.NewKey(t, "ed25519").Line))
	u.fails(t, extensions.SSH{Alias: "box"}, extensions.KindUnauthorized, "jump host", "known_two:1")
	// A chain by nesting is the same.
	u.file(t, "known_two", fmt.Sprintf("[%s]:%d %s\n", two.Address, two.Port, two.HostKeyLine))
	u.file(t, "conf.d/20-box.conf", fmt.Sprintf("Host box\n HostName 127.0.0.1\n Port %d\n ProxyJump two\nHost two\n ProxyJump one\n", s.Port))
	u.mustDial(t, extensions.SSH{Alias: "box"})
	if one.Connections() != 3 { // also the one that failed at the second
		t.Errorf("%d connections to the first jump host, want 3", one.Connections())
	}
	// An explicit list replaces it.
	j := keyed(one)
	j.HostKey, j.Identity = one.HostKeyLine, &extensions.SSHIdentity{PrivateKeyFile: "~/.ssh/key_one"}
	before := two.Connections()
	u.mustDial(t, extensions.SSH{Alias: "box", Jump: []extensions.SSH{j}})
	if two.Connections() != before {
		t.Error("ProxyJump was taken though jump hosts were given")
	}
}

// As in ssh, only the first of several jump hosts is reached by its own ProxyJump.
func TestJumpHostsOfJumpHosts(t *testing.T) {
	t.Parallel()
	u := newMe(t)
	u.file(t, "config", "Host box\nProxyJump one,two\nHost one\nProxyJump zero\nHost two\nProxyJump elsewhere\n")
	hops, err := resolve(extensions.SSH{Alias: "box"}, u.options())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range hops {
		names = append(names, h.host)
	}
	if got := strings.Join(names, " "); got != "zero one two box" {
		t.Errorf("the way is %s", got)
	}
}

func TestArgumentsWinOverTheAlias(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	u.file(t, "config", "Host box\n HostName 192.0.2.1\n Port 1\n User nobody-at-all\n IdentityFile ~/.ssh/none\n UserKnownHostsFile "+
		"~/.ssh/none\n ConnectTimeout 1\n")
	h := pinned(s)
	h.Alias, h.Identity = "box", &extensions.SSHIdentity{PrivateKeyFile: s.KeyFile}
	u.mustDial(t, h)
}

func TestAliasAgentAndHostKeyAlias(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	held := sshAgent(t, u)
	fill(t, u, held, 8)
	add(t, held, s.KeyFile, "mine")
	s.ClientKey.Write(t, filepath.Join(u.home, "named"))
	if err := os.Remove(filepath.Join(u.home, "named")); err != nil { // the public half alone
		t.Fatal(err)
	}
	u.file(t, "hosts", "the-box "+s.HostKeyLine+"\n")
	u.env["AGENT"], u.env["DIR"] = u.env["SSH_AUTH_SOCK"], u.home
	delete(u.env, "SSH_AUTH_SOCK")
	conf := fmt.Sprintf("Host box\n HostName 127.0.0.1\n Port %d\n User %s\n HostKeyAlias the-box\n UserKnownHostsFile %%d/.ssh/hosts\n",
		s.Port, s.User)
	u.file(t, "config", conf+" IdentityAgent $AGENT\n IdentitiesOnly yes\n IdentityFile ${DIR}/named.pub\n")
	u.mustDial(t, extensions.SSH{Alias: "box"})
	u.file(t, "config", conf+" IdentityAgent $AGENT\n IdentityFile ${DIR}/nothing\n")
	u.fails(t, extensions.SSH{Alias: "box"}, extensions.KindUnauthorized, "stopped listening after")
	u.file(t, "config", conf+" IdentityAgent none\n IdentityFile ${DIR}/nothing\n")
	u.fails(t, extensions.SSH{Alias: "box"}, extensions.KindUnauthorized, "no key to log in", "nothing does not exist")
	u.file(t, "config", conf+" IdentityFile ${NOT_SET}/x\n")
	u.fails(t, extensions.SSH{Alias: "box"}, extensions.KindInvalid, "${NOT_SET}")
}

func TestConfigFileOption(t *testing.T) {
	t.Parallel()
	s, u := sshd(t), newMe(t)
	u.conf = "~/elsewhere"
	u.fails(t, extensions.SSH{Alias: "box"}, extensions.KindInvalid, filepath.Join(u.home, "elsewhere"))
	write(t, filepath.Join(u.home, "elsewhere"),
		fmt.Sprintf("Host box\nHostName 127.0.0.1\nPort %d\nUser %s\nIdentityFile %s\nUserKnownHostsFile %s\n", s.Port, s.User, s.KeyFile,
			s.KnownHosts))
	u.mustDial(t, extensions.SSH{Alias: "box"})
}

func TestConfigThatIsRefused(t *testing.T) {
	t.Parallel()
	u := newMe(t)
	for text, c := range map[string]struct {
		kind extensions.Kind
		want string
	}{
		"Host box\nProxyCommand nc %h %p":              {extensions.KindUnsupported, "ProxyJump"},
		"Host *\nKnownHostsCommand /bin/x":             {extensions.KindUnsupported, "host_key"},
		"Host *\nRevokedHostKeys /etc/r":               {extensions.KindUnsupported, "@revoked"},
		"Host *\nCanonicalizeHostname yes":             {extensions.KindUnsupported, "full name"},
		"Match exec \"touch PWNED\"\nUser x":           {extensions.KindInvalid, "Match exec"},
		"Match host box exec \"touch PWNED\"\nUser x":  {extensions.KindInvalid, "Match exec"},
		"Match localnetwork 10.0.0.0/8\nUser x":        {extensions.KindInvalid, "localnetwork"},
		"Match final\nUser x":                          {extensions.KindInvalid, "final"},
		"Match host\nUser x":                           {extensions.KindInvalid, "no argument"},
		"Match\nUser x":                                {extensions.KindInvalid, "no criterion"},
		"Host box\nPort 70000":                         {extensions.KindInvalid, "70000"},
		"Host box\nPort ssh":                           {extensions.KindInvalid, "Port ssh"},
		"Host box\nHostName":                           {extensions.KindInvalid, ".ssh/config:2"},
		"Host box\nHostName %z.example.com":            {extensions.KindInvalid, "%z"},
		"Host box\nIdentityFile ~/%C":                  {extensions.KindInvalid, "%C"},
		"Host box\nIdentityFile \"~/x":                 {extensions.KindInvalid, "quote"},
		"Host box\nConnectTimeout never":               {extensions.KindInvalid, "never"},
		"Host box\nAddressFamily ipx":                  {extensions.KindInvalid, "ipx"},
		"Host box\nProxyJump a:x":                      {extensions.KindInvalid, "a:x"},
		"Host box\nProxyJump box":                      {extensions.KindInvalid, "jump hosts"},
		"Host box\nProxyJump a\nHost a\nProxyJump box": {extensions.KindInvalid, "jump hosts"},
		"Include config":                               {extensions.KindInvalid, "too deep"},
		"Include sub":                                  {extensions.KindInvalid, "sub"},
		"Host other\nUser x\nMatch user":               {extensions.KindInvalid, ".ssh/config:3"},
		"User x\nHost":                                 {extensions.KindInvalid, ".ssh/config:2"},
		"Host \"box\nUser x":                           {extensions.KindInvalid, "quote"},
		"\ufeffHost other\nUser x":                     {extensions.KindInvalid, "not a keyword"},
		"Host box\x00":                                 {extensions.KindInvalid, "not text"},
	} {
		if err := os.MkdirAll(filepath.Join(u.home, ".ssh", "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		u.file(t, "config", strings.ReplaceAll(text, "PWNED", filepath.Join(u.home, "pwned"))+"\n")
		_, err := resolve(extensions.SSH{Alias: "box"}, u.options())
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		wantError(t, err, c.kind, c.want)
		if extensions.RemedyOf(err) == "" {
			t.Errorf("%q: there is no remedy: %v", text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(u.home, "pwned")); err == nil {
		t.Error("a program of ssh_config was run")
	}
	// What is refused for one host is no matter to another.
	u.file(t, "config", "Host other\nProxyCommand x\nMatch host other exec x\nUser x\nHost box\nProxyCommand none\n")
	if _, err := resolve(extensions.SSH{Alias: "box"}, u.options()); err != nil {
		t.Error(err)
	}
}

func TestConnectTimeoutOfTheAlias(t *testing.T) {
	t.Parallel()
	u := newMe(t)
	h := server(t, silent)
	u.file(t, "config", fmt.Sprintf("Host box\nHostName 127.0.0.1\nPort %d\nConnectTimeout 1\n", h.Port))
	start := time.Now()
	u.fails(t, extensions.SSH{Alias: "box"}, extensions.KindUnreachable, "does not answer", "1s")
	if d := time.Since(start); d < 900*time.Millisecond || d > 30*time.Second {
		t.Errorf("it took %s", d)
	}
}

func TestAliasNobodyKnows(t *testing.T) {
	t.Parallel()
	newMe(t).fails(t, extensions.SSH{Alias: "no-such-alias.invalid"}, extensions.KindUnreachable, "no-such-alias.invalid", "ssh_config")
}

func FuzzConfig(f *testing.F) {
	f.Add("Host box\nUser me\nMatch host a exec b\nInclude x*\n", "box")
	f.Add("Host\nMatch\nInclude\n= =\n\"", "b")
	f.Add("Host box\nProxyJump a,b@[::1]:22\nIdentityFile %d/${X}/%%\n", "box")
	home := f.TempDir()
	f.Fuzz(func(t *testing.T, text, name string) {
		conf := write(t, filepath.Join(t.TempDir(), "config"), text)
		hops, err := resolve(extensions.SSH{Alias: name}, Options{Home: home, ConfigFile: conf, Getenv: func(string) string { return "" }})
		if err == nil && (len(hops) == 0 || hops[len(hops)-1].host == "" || hops[len(hops)-1].user == "") {
			t.Errorf("%q leads nowhere: %+v", text, hops)
		}
	})
}

func FuzzKnownHosts(f *testing.F) {
	f.Add("[a]:2 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHTpVldP4ePBEYgedr0i82PR6YdlchQGoFyj+IMEE2wd\n", "a", 2)
	f.Add("|1|AAAA|AAAA ssh-rsa AAAA\n@revoked * x y\n@cert-authority !a,* ssh-ed25519 "+
		"AAAAC3NzaC1lZDI1NTE5AAAAIHTpVldP4ePBEYgedr0i82PR6YdlchQGoFyj+IMEE2wd", "b", 22)
	f.Fuzz(func(t *testing.T, text, host string, port int) {
		b := &hostBook{rules: hostRules{host: host, port: port}}
		if err := b.read(strings.NewReader(text), "known_hosts"); err != nil {
			return
		}
		for _, e := range b.keys {
			if e.key == nil {
				t.Error("an entry has no key")
			}
		}
		if len(b.algorithms()) == 0 {
			t.Error("there is no algorithm")
		}
	})
}
