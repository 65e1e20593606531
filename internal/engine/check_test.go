package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// fields gives every place of a Request where a caller puts text.
var fields = map[string]func(r *engine.Request, s string){
	"profile":     func(r *engine.Request, s string) { r.Profile = s },
	"name":        func(r *engine.Request, s string) { r.Name = s },
	"name_prefix": func(r *engine.Request, s string) { r.Name, r.NamePrefix = "", s },
	"hosts":       func(r *engine.Request, s string) { r.Hosts = []string{s} },
	"input name":  func(r *engine.Request, s string) { r.Inputs = map[string]any{s: "x"} },
	"input repo":  func(r *engine.Request, s string) { r.Inputs = map[string]any{"repo": s} },
	"input ref": func(r *engine.Request, s string) {
		r.Inputs = map[string]any{"repo": "https://git.example.invalid/x.git", "ref": s}
	},
	"ttl":                    func(r *engine.Request, s string) { r.TTL = s },
	"scope":                  func(r *engine.Request, s string) { r.Scope = s },
	"actor":                  func(r *engine.Request, s string) { r.Consumer.Actor = s },
	"harness":                func(r *engine.Request, s string) { r.Consumer.Harness = s },
	"run_id":                 func(r *engine.Request, s string) { r.Consumer.RunID = s },
	"session_id":             func(r *engine.Request, s string) { r.Consumer.SessionID = s },
	"job_id":                 func(r *engine.Request, s string) { r.Consumer.JobID = s },
	"billing":                func(r *engine.Request, s string) { r.Billing = s },
	"env name":               func(r *engine.Request, s string) { r.Env = map[string]string{s: "x"} },
	"env value":              func(r *engine.Request, s string) { r.Env = map[string]string{"A": s} },
	"secret name":            func(r *engine.Request, s string) { r.Secrets = map[string]engine.Secret{s: extensions.NewSecret("x")} },
	"secret value":           func(r *engine.Request, s string) { r.Secrets = map[string]engine.Secret{"A": extensions.NewSecret(s)} },
	"max_cost":               func(r *engine.Request, s string) { r.MaxCost = s },
	"on_conflict":            func(r *engine.Request, s string) { r.OnConflict = s },
	"on_expiry":              func(r *engine.Request, s string) { r.OnExpiry = s },
	"on_unreachable_destroy": func(r *engine.Request, s string) { r.OnUnreachableDestroy = s },
	"trigger name":           func(r *engine.Request, s string) { r.Triggers = map[string]string{s: "x"} },
	"trigger value":          func(r *engine.Request, s string) { r.Triggers = map[string]string{"a": s} },
	"from_snapshot":          func(r *engine.Request, s string) { r.FromSnapshot = s },
	"from_sandbox":           func(r *engine.Request, s string) { r.FromSandbox = s },
	"desired_mode":           func(r *engine.Request, s string) { r.DesiredMode = s },
	"timeout name":           func(r *engine.Request, s string) { r.Timeouts = map[string]string{s: "10m"} },
	"timeout value":          func(r *engine.Request, s string) { r.Timeouts = map[string]string{"create": s} },
}

// fine in these: text of several lines, or a name chosen by nobody.
var takesLines = map[string]bool{"env value": true, "secret value": true, "trigger value": true, "timeout value": true}

func TestEveryFieldRefusesWhatIsNoTextAtPlanAndWritesNothing(t *testing.T) {
	t.Parallel()
	for field, set := range fields {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "state")
			e := newBench(t, onMachine(dir))
			for what, bad := range map[string]string{
				"a NUL": "a\x00b", "broken UTF-8": "a\xff\xfeb", "1 MiB": strings.Repeat("a", 1<<20), "a line break": "a\nb", "an escape": "a\x1b[31mb",
				"shell": "$(id);'\"`",
			} {
				if takesLines[field] && (what == "a line break" || what == "an escape" || what == "shell") {
					continue
				}
				if what == "shell" && (strings.HasPrefix(field, "trigger") || strings.HasPrefix(field, "timeout") || field == "input ref" ||
					strings.HasSuffix(field, "_id") || field == "harness" || field == "secret name") {
					continue // kept as it is, and never given to a shell
				}
				req := engine.Request{Profile: "profile.stub", Name: "one"}
				set(&req, bad)
				_, planErr := e.Plan(context.Background(), req)
				s, err := e.Create(context.Background(), req, nil, nil)
				for when, err := range map[string]error{"plan": planErr, "create": err} {
					if err == nil {
						t.Errorf("%s: %s is accepted", what, when)
						continue
					}
					if k := extensions.KindOf(err); k != extensions.KindInvalid && k != extensions.KindNotFound {
						t.Errorf("%s: %s: kind %s: %v", what, when, k, err)
					}
					text := err.Error() + extensions.RemedyOf(err)
					if len(text) > 4000 || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b") {
						t.Errorf("%s: the message of %s is not fit to be shown: %.200q (%d bytes)", what, when, text, len(text))
					}
				}
				if s.ID != "" {
					t.Errorf("%s: made %s", what, s.ID)
				}
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a state folder was made: %v", err)
			}
		})
	}
}

func TestTextOfSeveralLinesArrivesAsItIs(t *testing.T) {
	t.Parallel()
	for profile, show := range map[string]string{"profile.stub": "echo \"$%\"", "profile.quickstart": "printenv %"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			const text = "-----BEGIN-----\nüñí $(id) '\"`\\ ; rm -rf /\n\ttab\n-----END-----"
			s := b.create(engine.Request{Profile: profile, Name: "one", Env: map[string]string{"E": text},
				Secrets: map[string]engine.Secret{"S": extensions.NewSecret(text)}, Triggers: map[string]string{"t": text}})
			for _, name := range []string{"E", "S"} {
				if got := b.sh(s.Receipt, strings.ReplaceAll(show, "%", name)); got != text+"\n" {
					t.Errorf("%s is %q", name, got)
				}
			}
			row, err := b.Lookup(context.Background(), s.ID, "", "")
			if err != nil || row.Request.Triggers["t"] != text || row.Request.Env["E"] != text {
				t.Errorf("recorded: %+v, %v", row.Request, err)
			}
		})
	}
}

func FuzzARequestIsRefusedOrKeptExactly(f *testing.F) {
	f.Add("one", "10m", "https://x", "a b", "v")
	f.Add("a\x00", "-1h", "\xff", "\n", "\x00")
	f.Add("", "99999999h", "host://a?v=1&d=eyJsb2NhbCI6dHJ1ZX0", "A=B", "")
	e := newBench(f)
	f.Fuzz(func(t *testing.T, name, ttl, host, key, value string) {
		req := engine.Request{Profile: "profile.stub", NamePrefix: name, TTL: ttl, Hosts: []string{host}, Env: map[string]string{key: value},
			Triggers: map[string]string{key: value}, Consumer: engine.Consumer{RunID: value}, MaxCost: host, Timeouts: map[string]string{key: value}}
		if host == "" {
			req.Hosts = nil
		}
		p, err := e.Plan(context.Background(), req)
		if err != nil {
			if text := err.Error() + extensions.RemedyOf(err); !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				t.Errorf("%q", text)
			}
			if k := extensions.KindOf(err); k == extensions.KindInternal {
				t.Errorf("kind %s: %v", k, err)
			}
			return
		}
		if p.TTL <= 0 {
			t.Errorf("ttl %s", p.TTL)
		}
		kept, err := json.Marshal(req)
		var back engine.Request
		if err != nil || json.Unmarshal(kept, &back) != nil || !reflect.DeepEqual(req, back) {
			t.Errorf("%+v comes back as %+v", req, back)
		}
	})
}
