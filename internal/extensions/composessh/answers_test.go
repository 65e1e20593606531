package composessh

import (
	"maps"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestDockersWordsAreClassified(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]extensions.Kind{
		"permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock":                                                                                     extensions.KindUnauthorized,
		"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?":                                                                                        extensions.KindUnavailable,
		"Error response from daemon: mkdir /var/lib/docker/overlay2/x: no space left on device":                                                                                                    extensions.KindExhausted,
		"failed to create network x: Error response from daemon: Pool overlaps with other one on this address space":                                                                               extensions.KindExhausted,
		"could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network":                                                                               extensions.KindExhausted,
		"Bind for 127.0.0.1:8080 failed: port is already allocated":                                                                                                                                extensions.KindConflict,
		"pull access denied for acme/none, repository does not exist or may require 'docker login'":                                                                                                extensions.KindUnsupported,
		"manifest for busybox:nope not found: manifest unknown: manifest unknown":                                                                                                                  extensions.KindUnsupported,
		`pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`:                                                              extensions.KindUnauthorized,
		`unexpected status from HEAD request to https://registry.example/v2/x/manifests/1: 401 Unauthorized`:                                                                                       extensions.KindUnauthorized,
		`failed to resolve reference "docker.io/nobody/x:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`: extensions.KindUnsupported,
		"unauthorized: authentication required":                                                        extensions.KindUnauthorized,
		"toomanyrequests: You have reached your pull rate limit":                                       extensions.KindUnavailable,
		`Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host`:  extensions.KindUnavailable,
		`exec: "no-such": executable file not found in $PATH: unknown`:                                 extensions.KindInvalid,
		"could not select device driver \"nvidia\" with capabilities: [[gpu]]":                         extensions.KindUnsupported,
		"no matching manifest for linux/arm64/v8 in the manifest list entries":                         extensions.KindUnsupported,
		"image with reference x:1 was found but does not provide the specified platform (linux/s390x)": extensions.KindUnsupported,
		"something that nobody has seen yet":                                                           extensions.KindInternal,
	} {
		err := failure{Kind: failureDocker, Message: "the stack could not be started", Detail: text}.classify()
		if got := extensions.KindOf(err); got != want || extensions.RemedyOf(err) == "" {
			t.Errorf("%q is %s, want %s; remedy %q", text, got, want, extensions.RemedyOf(err))
		}
	}
}

func TestWhatAHostSaysIsBoundedAndClean(t *testing.T) {
	t.Parallel()
	evil := strings.Repeat("x", 1<<20) + "\x1b[31mred\nforged: line\x00\u202e"
	for _, kind := range []string{failureDocker, failureService, failureLate, "no-such-kind", "unavailable"} {
		text := failure{Kind: kind, Message: evil, Remedy: evil, Detail: evil}.classify().Error()
		if len(text) > 8<<10 || strings.ContainsAny(text, "\x1b\n\x00\u202e") {
			t.Errorf("kind %s: %d bytes, starting %.40q", kind, len(text), text)
		}
	}
	records := parseRecords("box ../../etc\nid=x\nbox sbx-aaaaaaaaaaaaaaaaaaaa\nstate=ready\nnonsense\nbusy \x1b[31m\n")
	if len(records) != 1 || records["sbx-aaaaaaaaaaaaaaaaaaaa"].values["state"] != "ready" ||
		strings.Contains(records["sbx-aaaaaaaaaaaaaaaaaaaa"].busy, "\x1b") {
		t.Errorf("%+v", records)
	}
	if c := parseContainers(answer{Containers: [][]string{{}, {"a"}, {"not-an-id", "", "", "", "", "", "", ""}}}); len(c) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestPublishedPortsAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"":                                     {},
		"9000/tcp":                             {},
		"127.0.0.1:32768->80/tcp, 9000/tcp":    {"80": "127.0.0.1:32768"},
		"127.0.0.1:5353->53/udp":               {"53/udp": "127.0.0.1:5353"},
		":::8080->80/tcp":                      {"80": "[::]:8080"},
		"[::1]:8080->80/tcp":                   {"80": "[::1]:8080"},
		"127.0.0.1:80-82->80-82/tcp":           {},
		"evil\x1b:1->80/tcp, 1.2.3.4:x->1/tcp": {},
		"127.0.0.1:1->80/\x1b[31mtcp":          {},
		"127.0.0.1:1->80/evil":                 {},
		"127.0.0.1:1->80/sctp":                 {"80/sctp": "127.0.0.1:1"},
	} {
		if got := publishedPorts(text); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestAConfigThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	host := &extensions.Host{Name: "h", SSH: &extensions.SSH{Address: "127.0.0.1", User: "u"}}
	for name, cfg := range map[string]extensions.Config{
		"no host":          {},
		"host without ssh": {Host: &extensions.Host{Name: "h", Local: true}},
		"relative root":    {Host: host, Values: map[string]any{"root": "boxes"}},
		"root is all":      {Host: host, Values: map[string]any{"root": "/"}},
		"root leaves home": {Host: host, Values: map[string]any{"root": "~/../x"}},
		"unknown key":      {Host: host, Values: map[string]any{"rot": "/x"}},
		"bad range":        {Host: host, Values: map[string]any{"subnets": []any{"10.0.0.1/16"}}},
		"IPv6 range":       {Host: host, Values: map[string]any{"subnets": []any{"fd00::/64"}}},
		"range too small":  {Host: host, Values: map[string]any{"subnets": []any{"10.0.0.0/28"}}},
		"subnet too small": {Host: host, Values: map[string]any{"subnet_size": 31}},
		"no duration":      {Host: host, Values: map[string]any{"stop_grace": "soon"}},
		"no time at all":   {Host: host, Values: map[string]any{"connect_timeout": "0s"}},
	} {
		if _, err := New().Open(t.Context(), cfg); !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, values := range []map[string]any{nil, {"root": "~/boxes"},
		{"root": "/srv/boxes", "create_timeout": "1d", "stop_grace": "1d2h", "subnet_size": 28.0}} {
		b, err := New().Open(t.Context(), extensions.Config{Host: host, Values: values})
		if err != nil {
			t.Errorf("%v: %v", values, err)
			continue
		}
		must(t, b.Close())
	}
}

// What a host says of a sandbox is shown to people and used as paths.
func TestReachabilityHoldsNothingOfAHostsChoice(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	id, err := extensions.NewID(nil)
	must(t, err)
	at := func(folder, mount, service, ports string) extensions.Reachability {
		a := answer{Records: "box " + string(id) + "\nfolder=" + folder + "\nstate=ready\nrunning=1\nexpect=1\nmount=" + mount +
			"\nleft=100000\naccount=" + s.config.Account + "\nid=" + string(id) + "\n",
			Containers: [][]string{{string(id), s.config.Account, "1", service, ports, "Up 1 second", "x", ""}}}
		o := b.observeOne(b.handle(id), a)
		if o.Phase != extensions.PhaseReady {
			t.Errorf("%q is %s: %s", service, o.Phase, o.Reason)
		}
		return o.Reachability
	}
	good := at("/root/boxes/x", "/workspace", "web", "127.0.0.1:1->80/tcp")
	if good.WorkDir != "/workspace" || good.RemoteDir != "/root/boxes/x/workspace" || good.Ports["web/80"] != "127.0.0.1:1" ||
		good.URLs["web"] != "http://127.0.0.1:1" {
		t.Errorf("%+v", good)
	}
	for _, mount := range []string{"/w\x1b]0;title\a", "relative", "/a/../b", "/a/", "/w\u202e", "/w\xff"} {
		if r := at("/root", mount, "web", ""); r.WorkDir != "" || r.RemoteDir != "" {
			t.Errorf("%q: %+v", mount, r)
		}
		if r := at(mount, "/workspace", "web", ""); r.RemoteDir != "" {
			t.Errorf("%q: %+v", mount, r)
		}
	}
	for _, service := range []string{"web\x1b[31m", "a b", "../x", "a/b"} {
		if r := at("/root", "/workspace", service, "127.0.0.1:1->80/tcp, 127.0.0.1:2->53/udp"); len(r.Ports)+len(r.URLs) != 0 {
			t.Errorf("%q: %+v", service, r)
		}
	}
}
