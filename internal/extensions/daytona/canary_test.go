package daytona_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/daytona/daytonatest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// The credential is in its header alone, and a secret of the sandbox in what is uploaded into it.
func TestSecretsAreInTheirRequestsAlone(t *testing.T) {
	t.Parallel()
	v := daytonatest.Start(t)
	cfg := extensions.Config{Account: "acme/web", Values: map[string]any{"api_url": v.APIURL}, Credentials: map[string]extensions.Secret{
		"jwt_token": extensions.NewSecret(v.JWT), "organization_id": extensions.NewSecret(v.Organization)}}
	b, err := daytona.New().Open(t.Context(), cfg)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	const secret = "canary-of-the-sandbox"
	spec := exttest.Spec(t, cfg, exttest.With(func(s *extensions.Spec) {
		s.SecretNames, s.Secrets = []string{"TOKEN"}, map[string]extensions.Secret{"TOKEN": extensions.NewSecret(secret)}
	}))
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	o, err := b.WaitReady(t.Context(), spec, h)
	must(t, err)
	r, err := b.(extensions.Execer).Exec(t.Context(), h, extensions.ExecRequest{Shell: `printf %s "$TOKEN" | wc -c`})
	if err != nil || strings.TrimSpace(string(r.Stdout)) != "21" {
		t.Errorf("%v: %q", err, r.Stdout)
	}
	paused(t, b, h)
	taken := kept(t, cfg, b, h)
	_, err = b.(extensions.Pauser).Resume(t.Context(), h, spec.Deadline)
	must(t, err)
	_, restored := made(t, cfg, b, from(taken))
	if got := sh(t, b, restored, `printf %s "${TOKEN-none}"`); got != "none" {
		t.Errorf("the secret of the first sandbox is a variable of the restored one: %q", got)
	}
	if all := h.Encode() + taken.Handle.Ref + strings.Join(slices.Collect(maps.Values(v.Snapshots())), "") + o.Reason + strings.Join(v.Commands(), "\n"); strings.Contains(all, secret) || strings.Contains(all, v.JWT) {
		t.Errorf("a secret is in %q", all)
	}
	uploads := 0
	for _, q := range v.Requests() {
		headers := q.Header.Clone()
		headers.Del("Authorization")
		headers.Del("X-Daytona-Organization-Id")
		rest := q.Path + q.Query + string(q.Body)
		for _, values := range headers {
			rest += strings.Join(values, "")
		}
		if strings.Contains(rest, v.JWT) || strings.Contains(q.Path+q.Query+string(q.Body), v.Organization) {
			t.Errorf("%s has the credential in other places than its header", q.On)
		}
		switch has := strings.Contains(rest, secret); {
		case has && q.On == "POST /files/upload-v2":
			uploads++
		case has:
			t.Errorf("%s has the sandbox's secret", q.On)
		}
	}
	if uploads == 0 {
		t.Error("the secret was never sent, so this shows nothing")
	}
}
