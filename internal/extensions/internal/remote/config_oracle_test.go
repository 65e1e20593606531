package remote

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// TestConfigAsSSHReadsIt compares what we make of ssh_config with `ssh -G`.
func TestConfigAsSSHReadsIt(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("ssh")
	if err != nil {
		t.Skip("SKIPPED: no ssh")
	}
	u := newMe(t)
	u.file(t, "more", "Host box\n User included\nMatch all\n IdentityFile ~/.ssh/more\n")
	for i, text := range []string{
		"",
		"Host box\n HostName box.example.com\n Port 2222\n User me",
		"Port 1000\nHost box\nPort 2000",
		"HOST box\nhostname=A.example.com\nPORT = 22\nuser\tme",
		"Host other box\tthird\nUser me",
		"Host b?x\nUser q\nHost box?\nPort 99",
		"Host *x !box\nUser star\nHost *\nUser all",
		"Host \"box\"\nUser quoted",
		"Host box\nIdentityFile ~/a\nIdentityFile \"~/b c\"\nHost *\nIdentityFile ~/d",
		"Host box # comment\nUser me # more",
		"Include more\nHost box\nUser own",
		"Host other\nInclude more\nHost box\nUser own",
		"Host box\n Include more\n Port 7",
		"Include %HOME%/.ssh/mo*\n",
		"Include nothing-there\nHost box\nUser me",
		"Match host box\nUser m",
		"Match host other\nUser m",
		"Match !host other\nUser m",
		"Host box\nHostName real\nMatch host real\nUser m",
		"Host box\nHostName real\nMatch originalhost box host real,x\nUser m",
		"Match originalhost \"a,b*\" user root\nPort 5",
		"User root\nMatch user root\nPort 5",
		"Match localuser nobody-here\nPort 5\nMatch all\nPort 6",
		"Match canonical all\nPort 5",
		"Host box\nHostName %h.example.com",
		"Host box\nProxyJump a,b@c:24",
		"Host box\nProxyJump none\nHost *\nProxyJump x",
		"Host box\nUserKnownHostsFile ~/one ~/two\nGlobalKnownHostsFile /x \"/y z\"",
		"Host box\nUserKnownHostsFile none",
		"Host box\nIdentitiesOnly yes\nConnectTimeout 7\nAddressFamily inet6",
		"\r\nHost box\r\nUser windows\r\n",
		"Host box\n  User first\n  User second",
		"Host box\nIdentityFile ~/k-%h-%p-%r-%n-%u",
		"Host box\nPort 2200\nHostKeyAlias The.Alias",
		"\t Host\t=\tbox\n\tUser\t=\tme\t# more\n#Port 9\n  # Port 8\nPort=7",
		"Host=box\nUser a#b\nIdentityFile \"~/a#b\"\nIdentityFile=~/c",
		"Match=host box\nUser m\nMatch host \"other,box\" # comment\nPort 5\nMatch host box,!box\nPort 6",
		"Host other\nUser \"a b\"\nMatch originalhost other host x\nPort 5\nHost box \nPort 6\t\f",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			u := *u
			text = strings.ReplaceAll(text, "%HOME%", u.home)
			u.conf = u.file(t, fmt.Sprint("config", i), text)
			hops, err := resolve(extensions.SSH{Alias: "box"}, u.options())
			if err != nil {
				t.Fatal(err)
			}
			compare(t, sshG(t, program, u.conf), hops, &u)
		})
	}
}

// sshG is what ssh makes of the file, as keyword → values. The file is given a
// copy of the home's includes by absolute names, since ssh asks the password
// database for the home.
func sshG(t *testing.T, program, conf string) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), "Include more", "Include "+filepath.Dir(conf)+"/more")
	copied := write(t, conf+".ssh", text)
	out, err := exec.CommandContext(t.Context(), program, "-G", "-F", copied, "box").CombinedOutput()
	if err != nil {
		t.Fatalf("ssh -G: %v: %s", err, out)
	}
	got := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		got[key] = append(got[key], value)
	}
	return got
}

func compare(t *testing.T, theirs map[string][]string, hops []hop, u *me) {
	t.Helper()
	h := hops[len(hops)-1]
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	equal := func(what, ours, want string) {
		t.Helper()
		ours = strings.ReplaceAll(ours, u.home, "~")
		if want = strings.ReplaceAll(want, home, "~"); ours != want {
			t.Errorf("%s: we have %q, ssh has %q", what, ours, want)
		}
	}
	first := func(key string) string { return strings.Join(theirs[key][:min(len(theirs[key]), 1)], "") }
	equal("hostname", h.host, strings.ToLower(first("hostname")))
	equal("port", fmt.Sprint(h.port), first("port"))
	equal("user", h.user, first("user"))
	equal("identitiesonly", map[bool]string{true: "yes", false: "no"}[h.login.only], first("identitiesonly"))
	equal("addressfamily", map[string]string{"tcp": "any", "tcp4": "inet", "tcp6": "inet6"}[h.network], first("addressfamily"))
	if alias := first("hostkeyalias"); alias != "" {
		equal("hostkeyalias", h.rules.name(), strings.ToLower(alias))
	}
	if limit := first("connecttimeout"); limit != "none" {
		equal("connecttimeout", h.timeout.String(), limit+"s")
	}
	ids := slices.DeleteFunc(theirs["identityfile"], func(f string) bool {
		return strings.Contains(f, "_sk") || strings.HasSuffix(f, "id_dsa") || strings.HasSuffix(f, "id_xmss")
	})
	if slices.Contains(ids, "~/.ssh/id_rsa") { // the defaults, in ssh's order
		ids = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
	}
	var ours []string
	for _, f := range h.login.files {
		ours = append(ours, f.path)
	}
	equal("identityfile", strings.Join(ours, " "), expand(strings.Join(ids, " "), h, u))
	equal("known hosts", strings.Join(h.rules.files, " "),
		strings.TrimSpace(strings.ReplaceAll(expand(first("userknownhostsfile")+" "+first("globalknownhostsfile"), h, u), "none ", "")))
	var jumps []string
	for _, j := range hops[:len(hops)-1] {
		jumps = append(jumps, j.host)
	}
	var want []string
	for j := range strings.SplitSeq(first("proxyjump"), ",") {
		_, host, found := strings.Cut(j, "@")
		if !found {
			host = j
		}
		if host, _, _ = strings.Cut(host, ":"); host != "" && host != "none" {
			want = append(want, host)
		}
	}
	equal("proxyjump", strings.Join(jumps, ","), strings.Join(want, ","))
}

// expand does for ssh -G's paths what ssh does later.
func expand(text string, h hop, u *me) string {
	p, _ := newUserEnv(u.options())
	return strings.NewReplacer("%h", h.host, "%p", fmt.Sprint(h.port), "%r", h.user, "%n", "box", "%u", p.user).Replace(text)
}
