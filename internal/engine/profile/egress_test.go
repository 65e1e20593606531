package profile_test

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestEgressDestinations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]extensions.EgressRule{
		"10.2.0.0/16:443":        {CIDR: "10.2.0.0/16", Port: 443},
		"10.2.0.7:1":             {CIDR: "10.2.0.7/32", Port: 1},
		"0.0.0.0/0:65535":        {CIDR: "0.0.0.0/0", Port: 65535},
		"[2001:db8::]/32:443":    {CIDR: "2001:db8::/32", Port: 443},
		"[2001:DB8::1]:443":      {CIDR: "2001:db8::1/128", Port: 443},
		"pypi.org:443":           {Domain: "pypi.org", Port: 443},
		"*.PyPI.org:443":         {Domain: "*.pypi.org", Port: 443},
		"registry-1.docker.io:*": {Domain: "registry-1.docker.io"},
		"10.0.0.0/8:*":           {CIDR: "10.0.0.0/8"},
		"db:5432":                {Domain: "db", Port: 5432},
	} {
		got, err := profile.ParseEgress(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestEgressThatIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"pypi.org":                             "the port is missing",
		"pypi.org:":                            "the port is missing",
		"10.2.0.0/16":                          "the port is missing",
		"[2001:db8::]":                         "the port is missing",
		":443":                                 "the port is missing",
		"":                                     "the port is missing",
		"pypi.org:0":                           "is not a port",
		"pypi.org:65536":                       "is not a port",
		"pypi.org:-1":                          "is not a port",
		"pypi.org:+443":                        "is not a port",
		"pypi.org:0443":                        "is not a port",
		"pypi.org:https":                       "is not a port",
		"pypi.org:443 ":                        "is not a port",
		"pypi.org:443\n":                       "is not a port",
		"https://pypi.org":                     "without a scheme",
		"10.2.0.1/16:443":                      "bits beyond its prefix: write 10.2.0.0/16",
		"10.2.0.0/33:443":                      "is not a prefix length from /0 to /32",
		"10.2.0.0/016:443":                     "is not a prefix length",
		"10.2.0.300:443":                       "is not an IP address",
		"10.0.0/8:443":                         "is not an IP address",
		"2001:db8::1:443":                      "needs brackets",
		"[10.0.0.1]:443":                       "brackets are for IPv6",
		"[2001:db8::/32]:443":                  "needs brackets",
		"[::ffff:10.0.0.1]:443":                "is not an IP address",
		"[fe80::1%eth0]:443":                   "is not an IP address",
		"*:443":                                "set network.default to allow",
		"*:*":                                  "set network.default to allow",
		"pypi.*.org:443":                       `"*" can only stand in front`,
		"*.*.org:443":                          `"*" can only stand in front`,
		"-pypi.org:443":                        "is not a host name",
		"pypi-.org:443":                        "is not a host name",
		"py pi.org:443":                        "is not a host name",
		"pypi..org:443":                        "is not a host name",
		"$(id).org:443":                        "is not a host name",
		"pypi.org\x00:443":                     "is not a host name",
		"пример.рф:443":                        "is not a host name",
		strings.Repeat("a", 64) + ".org:443":   "is not a host name",
		strings.Repeat("abc.", 70) + "org:443": "longer than 253",
	} {
		_, err := profile.ParseEgress(text)
		if err == nil || !strings.Contains(err.Error(), want) || !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
