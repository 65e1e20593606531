package extensions

import (
	"encoding/base64"
	"strings"
	"testing"
)

var hosts = []Host{
	{Name: "here", Local: true},
	{Name: "a.b_c-D9", SSH: &SSH{}, Capacity: &HostCapacity{}, Cost: &HostCost{}},
	{Name: "far", Region: "eu", Labels: map[string]string{"z": "<&>\u2028", "a": "ä"}, Priority: -3, AllowFirewall: true,
		ProxyImage: "p@sha256:0",
		Capacity:   &HostCapacity{MaxSandboxes: 3},
		Cost:       &HostCost{PerHour: "0.40 USD", CPU: 4, MemoryMB: 1 << 20, GPU: 1, DiskMB: 9, Idle: IdleShared},
		SSH: &SSH{Address: "::1", Port: 22, User: "u", HostKey: "ssh-ed25519 AAAA+/=",
			Identity: &SSHIdentity{PrivateKeyFile: "~/k", CertificateFile: "c", Agent: true, Command: []string{"w", ""}},
			Jump:     []SSH{{Alias: "b", KnownHosts: "~/kh", Jump: []SSH{{Address: "x", HostCA: "ca"}}}}}},
}

// checkRef: a string is one host's ref or refused.
func checkRef(t *testing.T, ref string) bool {
	t.Helper()
	h, err := ParseHostRef(ref)
	switch {
	case err != nil && (!IsKind(err, KindInvalid) || RemedyOf(err) == "" || h.Name != ""):
		t.Errorf("%.200q: %v, with the host %+v", ref, err, h)
	case err == nil && h.Ref() != ref:
		t.Errorf("%q is read as %q", ref, h.Ref())
	case err == nil && (len(ref) > MaxHostRef || strings.ContainsAny(ref, " \n\r\t")):
		t.Errorf("%.200q is accepted", ref)
	}
	return err == nil
}

func FuzzAStringIsOneHostsRefOrRefused(f *testing.F) {
	for _, h := range hosts {
		f.Add(h.Ref())
	}
	f.Add("host://a?v=1&d=e30\n")
	f.Add(`{"name":"here","local":true}`)
	f.Fuzz(func(t *testing.T, s string) {
		checkRef(t, s)
		checkRef(t, hostScheme+"a?"+hostVersion+base64.RawURLEncoding.EncodeToString([]byte(s))) // past the wrapping
	})
}

func TestAHostIsReadFromItsRefAlone(t *testing.T) {
	t.Parallel()
	for _, h := range hosts {
		ref := h.Ref()
		if !IsHostRef(ref) || !checkRef(t, ref) {
			t.Errorf("%q is refused", ref)
		}
		for i := range ref { // one byte more, less, or another
			for _, other := range []string{ref[:i] + ref[i+1:], ref[:i] + "A" + ref[i:], ref[:i] + "=" + ref[i+1:], ref[:i] + "\n" + ref[i:]} {
				checkRef(t, other)
			}
		}
	}
	if got := (Host{Name: "here", Local: true}).Ref(); got != "host://here?v=1&d=eyJsb2NhbCI6dHJ1ZX0" {
		t.Errorf("the form has changed: %s", got)
	}
}

func TestWhatIsNotWrittenAsWeWriteItIsNoRef(t *testing.T) {
	t.Parallel()
	good := hosts[0].Ref()
	d := func(json string) string {
		return "host://here?v=1&d=" + base64.RawURLEncoding.EncodeToString([]byte(json))
	}
	for name, ref := range map[string]string{
		"nothing": "", "the former form": `{"name":"here","local":true}`, "a bare name": "here", "no name": strings.Replace(good, "here", "", 1),
		"an odd name": strings.Replace(good, "here", "he re", 1), "a path": strings.Replace(good, "here", "here/x", 1),
		"an escaped name": strings.Replace(good, "here", "h%65re", 1),
		"another version": strings.Replace(good, "v=1", "v=2", 1), "another scheme": strings.Replace(good, "host:", "HOST:", 1),
		"another order": "host://here?d=eyJsb2NhbCI6dHJ1ZX0&v=1", "a key twice": good + "&v=1", "content twice": good + "&d=e30",
		"another key": good + "&x=1", "a fragment": good + "#x",
		"no content": "host://here?v=1", "empty content": "host://here?v=1&d=", "padding": good + "=", "a line break": good + "\n",
		"space before": " " + good,
		"unused bits":  "host://here?v=1&d=e31", "no object": d("[]"), "null": d("null"), "an unknown field": d(`{"local":true,"x":1}`),
		"state":         d(`{"facts":{"os":"linux"}}`),
		"a field twice": d(`{"local":true,"local":true}`), "white space": d(`{ "local":true}`), "another case": d(`{"Local":true}`),
		"what is left out":     d(`{"local":false}`),
		"another order inside": d(`{"region":"eu","local":true}`), "a second value": d(`{"local":true}{}`),
		"a second name": d(`{"name":"there"}`), "an escape": d(`{"region":"\u0065u"}`),
		"too long": Host{Name: "here", Region: strings.Repeat("x", MaxHostRef)}.Ref(),
	} {
		if _, err := ParseHostRef(ref); !IsKind(err, KindInvalid) {
			t.Errorf("%s: %.100q: %v", name, ref, err)
		}
		checkRef(t, ref)
	}
}
