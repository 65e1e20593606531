package e2btest

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// What the vendor tells of a sandbox's daemon; the features of its SDK depend on it.
const envdVersion = "0.6.0"

const clientID = "6532622b"

type newSandbox struct {
	TemplateID string            `json:"templateID"`
	Timeout    *int              `json:"timeout"`
	AutoPause  bool              `json:"autoPause"`
	Secure     bool              `json:"secure"`
	Internet   *bool             `json:"allow_internet_access"`
	Network    map[string]any    `json:"network"`
	Metadata   map[string]string `json:"metadata"`
	EnvVars    map[string]string `json:"envVars"`
	AutoResume struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
}

func (v *Vendor) create(_ *http.Request, body []byte) (answer, error) {
	var want newSandbox
	if err := read(body, &want); err != nil {
		return answer{}, err
	}
	t := v.template(want.TemplateID)
	if t == nil {
		return answer{}, fail(http.StatusNotFound, fmt.Sprintf("template '%s' not found", want.TemplateID))
	}
	if t.building != nil && t.building.status != "ready" {
		return answer{}, fail(http.StatusNotFound, fmt.Sprintf("template '%s' has no ready build", want.TemplateID))
	}
	life, err := v.timeout(want.Timeout)
	if err != nil {
		return answer{}, err
	}
	if err := checkNetwork(want.Network); err != nil {
		return answer{}, err
	}
	public, told := want.Network["allowPublicTraffic"].(bool)
	private := told && !public
	if private && !want.Secure {
		return answer{}, fail(http.StatusBadRequest,
			"You cannot create a sandbox without public access unless you enable secure envd access via 'secure' flag.")
	}
	if err := v.admit(); err != nil {
		return answer{}, err
	}
	s := &sandbox{templateID: t.id, alias: t.name, size: t.Template, metadata: want.Metadata, env: maps.Clone(t.env), network: want.Network,
		internet: want.Internet, autoPause: want.AutoPause, autoResume: want.AutoResume.Enabled}
	if s.env == nil {
		s.env = map[string]string{}
	}
	maps.Copy(s.env, want.EnvVars)
	if want.Secure {
		s.accessToken = token()
	}
	if private {
		s.trafficKey = token()
	}
	if err := v.launch(s, t.folder, life); err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusCreated, body: s.brief()}, nil
}

// launch makes s exist, with the files of a folder.
func (v *Vendor) launch(s *sandbox, from string, life time.Duration) error {
	r, err := v.room("room", from)
	if err != nil {
		return err
	}
	s.Box, s.id, s.made = r, "i"+letters(19), v.clock.Now()
	s.processList = newProcesses(r)
	v.boot(s, life)
	v.sandboxes[s.id] = s
	v.creates++
	for kind, secret := range map[string]string{"token": s.accessToken, "traffic token": s.trafficKey} {
		if secret != "" {
			v.choose(secret, kind, v.creates)
		}
	}
	v.choose(s.id, "sandbox", v.creates)
	return nil
}

// brief is what create and connect answer.
func (s *sandbox) brief() map[string]any {
	out := map[string]any{"templateID": s.templateID, "sandboxID": s.id, "clientID": clientID, "envdVersion": envdVersion, "domain": nil,
		"trafficAccessToken": nil}
	s.secrets(out)
	if s.trafficKey != "" {
		out["trafficAccessToken"] = s.trafficKey
	}
	return out
}

func (s *sandbox) secrets(out map[string]any) {
	if s.alias != "" {
		out["alias"] = s.alias
	}
	if s.accessToken != "" {
		out["envdAccessToken"] = s.accessToken
	}
}

// checkNetwork refuses what the vendor's server does, beyond its description.
func checkNetwork(n map[string]any) error {
	var denied []string
	for _, d := range texts(n["denyOut"]) {
		if domain(d) {
			return fail(http.StatusBadRequest, "invalid denied CIDR "+d)
		}
		denied = append(denied, d)
	}
	for _, a := range texts(n["allowOut"]) {
		if domain(a) && !slices.Contains(denied, "0.0.0.0/0") {
			return fail(http.StatusBadRequest,
				"When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic.")
		}
	}
	return nil
}

func domain(rule string) bool {
	_, err := netip.ParsePrefix(rule)
	_, err2 := netip.ParseAddr(rule)
	return err != nil && err2 != nil && !strings.ContainsAny(rule, "/")
}

func texts(list any) (out []string) {
	all, _ := list.([]any)
	for _, one := range all {
		s, _ := one.(string)
		out = append(out, s)
	}
	return out
}
