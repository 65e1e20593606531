package netwall

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

func TestProgramsArePOSIX(t *testing.T) {
	t.Parallel()
	shtexttest.POSIX(t, shtexttest.Programs(t, Scripts))
}

func TestRulesThatNothingEnforcesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule extensions.EgressRule
		kind extensions.Kind
	}{
		{extensions.EgressRule{CIDR: "2001:db8::/32", Port: 443}, extensions.KindUnsupported},
		{extensions.EgressRule{CIDR: "10.2.0.0/16; DROP", Port: 443}, extensions.KindInvalid},
		{extensions.EgressRule{CIDR: "10.2.0.0/16", Port: 70000}, extensions.KindInvalid},
		{extensions.EgressRule{Domain: "example", Port: 443}, extensions.KindInvalid},
		{extensions.EgressRule{Domain: "example.org\nacl all", Port: 443}, extensions.KindInvalid},
		{extensions.EgressRule{Domain: "10.1.2.3", Port: 443}, extensions.KindInvalid},
		{extensions.EgressRule{Domain: "exam$ple.org", Port: 443}, extensions.KindInvalid},
		{extensions.EgressRule{Domain: "*.*.org", Port: 443}, extensions.KindInvalid},
		{extensions.EgressRule{Domain: "*.example.org"}, ""},
		{extensions.EgressRule{CIDR: "10.2.3.4/16", Port: 443}, ""},
	} {
		err := CheckRules([]extensions.EgressRule{c.rule})
		if got := extensions.KindOf(err); got != c.kind || c.kind != "" && extensions.FieldOf(err) != "network.egress[0]" {
			t.Errorf("%+v: %v", c.rule, err)
		}
	}
}

func TestTheProxyPassesWhatTheRulesName(t *testing.T) {
	t.Parallel()
	text := SquidConfig([]extensions.EgressRule{{Domain: "a.example.org", Port: 443}, {Domain: "*.b.example"}, {CIDR: "10.2.0.0/16", Port: 80}}, "192.0.2.1/32")
	for _, want := range []string{"acl host dst 192.0.2.1/32\n", `acl name0 dstdom_regex -n -i ^a\.example\.org$$` + "\n",
		`acl name1 dstdom_regex -n -i ^[^/]+\.b\.example$$` + "\n", "acl port0 port 443\n", "acl port1 port 1-65535\n",
		"http_access allow literal port2 to2 !metadata !host\n", "http_access allow name0 port0 !literal !own !host\n", "http_access deny all\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in:\n%s", want, text)
		}
	}
	// The last word is deny, and the private networks are judged before any name.
	if strings.LastIndex(text, "http_access allow") > strings.LastIndex(text, "http_access deny all") || !strings.Contains(text, "acl own dst 0.0.0.0/8") {
		t.Error("something passes after the last rule")
	}
	if env := ProxyEnv("proxy", []string{"db"}); env["https_proxy"] != "http://proxy:3128" || env["NO_PROXY"] != "localhost,127.0.0.1,db" {
		t.Errorf("%v", env)
	}
}

// What an attempt prints decides; tools that do not work prove nothing.
func TestOnlySilenceWithWorkingToolsIsAProof(t *testing.T) {
	t.Parallel()
	text := shtext.Join([]*shtext.Files{Scripts}, "tries")
	shtexttest.Prints(t, text+`
try() { if wall_holds "$1"; then echo holds; else echo "fails: $(echo $wall_why)"; fi; }
try 'control works
tries ended'
try 'control works
answered TCP 1.1.1.1 port 53
tries ended'
try 'control failed: the peer does not answer
tries ended'
try 'control works'
try ''
try 'answered UDP a
answered TCP a
answered UDP b
answered UDP c
answered UDP d
control works
tries ended'
`, "holds\nfails: answered TCP 1.1.1.1 port 53 control works tries ended\nfails: control failed: the peer does not answer tries ended\nfails: control works\nfails: \n"+
		"fails: answered TCP a answered UDP a answered UDP b answered UDP c control works tries ended")
}

func TestTheRulesOfASandbox(t *testing.T) {
	t.Parallel()
	text := shtext.Join([]*shtext.Files{Scripts}, "rules")
	allow := Allowed([]extensions.EgressRule{{CIDR: "10.2.3.4/16", Port: 443}, {CIDR: "192.0.2.0/24"}, {Domain: "no.example"}})
	if allow != "10.2.0.0/16,443 192.0.2.0/24,0" {
		t.Fatalf("%q", allow)
	}
	shtexttest.Prints(t, "id=sbx-x guard_bridges=sxb guard_allow='"+allow+"' subnet_ranges=10.200.0.0/16\n"+text+"firewall_rules\nfirewall_rules6\n", strings.Join([]string{
		":SBX-sbx-x - [0:0]",
		"-A SBX-sbx-x -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN",
		"-A SBX-sbx-x -d 10.200.0.0/16 -j DROP",
		"-A SBX-sbx-x -d 169.254.0.0/16 -j DROP",
		"-A SBX-sbx-x -d 10.2.0.0/16 -p tcp --dport 443 -j RETURN",
		"-A SBX-sbx-x -d 10.2.0.0/16 -p udp --dport 443 -j RETURN",
		"-A SBX-sbx-x -d 192.0.2.0/24 -p tcp -j RETURN",
		"-A SBX-sbx-x -d 192.0.2.0/24 -p udp -j RETURN",
		"-A SBX-sbx-x -j DROP",
		"-I FORWARD 1 -i sxb ! -o sxb -m comment --comment sandboxer:sbx-x -j SBX-sbx-x",
		"-I FORWARD 1 -o sxb ! -i sxb -m conntrack ! --ctstate ESTABLISHED,RELATED,DNAT -m comment --comment sandboxer:sbx-x -j DROP",
		"-I INPUT 1 -i sxb -m conntrack ! --ctstate ESTABLISHED,RELATED -m comment --comment sandboxer:sbx-x -j DROP",
		"-I FORWARD 1 -i sxb -m comment --comment sandboxer:sbx-x -j DROP",
		"-I FORWARD 1 -o sxb -m comment --comment sandboxer:sbx-x -j DROP",
		"-I INPUT 1 -i sxb -m comment --comment sandboxer:sbx-x -j DROP",
	}, "\n"))
}

func TestAProofIsKeptForItsPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two, none := ProofAt(dir, "one"), ProofAt(dir, "two"), ProofAt("", "one")
	one.Keep("1/a/b/c macvlan")
	two.Keep("bad\x1b[2J")
	none.Keep("x")
	if one.Read() != "1/a/b/c macvlan" || ProofAt(dir, "one").Read() != one.Read() || two.Read()+none.Read() != "" {
		t.Errorf("%q, %q, %q", one.Read(), two.Read(), none.Read())
	}
	two.Keep(strings.Repeat("x", maxProof+1))
	if info, err := os.Stat(one.File); two.Read() != "" || err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(filepath.Dir(one.File)) != dir {
		t.Errorf("%v", err)
	}
}
