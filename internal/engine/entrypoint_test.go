package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func newRunner(t *testing.T) *bench {
	t.Helper()
	point := func(name, text string) string {
		return "id: profile." + name + "\nversion: \"1.0.0\"\nextends: profile.stub\n" + text
	}
	return newBench(t, onFiles(map[string]string{
		"profiles/a.yaml": point("runner", "entrypoint: [sh, -c, 'test \"$(cat /run/secrets/TOKEN)\" = once && sleep 60']\nsecrets_as: file\n"),
		"profiles/b.yaml": point("broken", "entrypoint: [sh, -c, 'sleep 60; exit 3']\n"),
		"profiles/c.yaml": point("short", "entrypoint: [sh, -c, 'exit 3']\n"),
		"profiles/d.yaml": "id: profile.here\nversion: \"1.0.0\"\nextension: ext.local\nisolation: { level: none }\nentrypoint: image\n",
		"profiles/e.yaml": "id: profile.bare\nversion: \"1.0.0\"\nextension: ext.envonly\nisolation: { level: container }\nentrypoint: image\n" +
			"secrets_as: file\n",
		"extensions/ext.envonly.yaml": "id: ext.envonly\ntitle: Env only\nhandler: saas-stub\ncapabilities: { secrets_as: [env] }\n",
	}))
}

// A runner inside gets its token as a secret, and its end is the sandbox's: settled at its true time, by whoever
// comes by.
func TestTheEndOfAnEntrypointIsTheSandboxs(t *testing.T) {
	t.Parallel()
	b := newRunner(t)
	ctx := t.Context()
	token := map[string]engine.Secret{"TOKEN": extensions.NewSecret("once")}
	done := b.create(engine.Request{Profile: "profile.runner", Name: "done", Secrets: token})
	broken := b.create(engine.Request{Profile: "profile.broken", Name: "broken"})
	if err := vendor.At(b.vendor).Advance(time.Hour / 2); err != nil {
		t.Fatal(err)
	}
	late := b.reopen(ahead(func() time.Duration { return time.Hour / 2 }))
	for s, want := range map[*engine.Sandbox][2]string{&done: {"expired", "its entrypoint ended with exit code 0"},
		&broken: {"failed", "its entrypoint ended with exit code 3"}} {
		if got, err := late.Get(ctx, s.Receipt); err != nil || got.State != want[0] || got.Reason != want[1] {
			t.Errorf("%s is %s (%s), %v", s.Name, got.State, got.Reason, err)
		}
	}
	report, err := late.Sweep(ctx, false, nil)
	if err != nil || len(report.Settled) != 2 || len(report.Failures) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	for s, why := range map[*engine.Sandbox]string{&done: "terminated", &broken: "lost"} {
		row, err := b.book().Get(ctx, s.ID)
		lived := row.EndedAt.Sub(s.CreatedAt)
		if err != nil || row.EndReason != why || lived < time.Minute || lived > 2*time.Minute || row.EndEstimated {
			t.Errorf("%s ended after %s (estimated: %t), as %s: %v", s.Name, lived, row.EndEstimated, row.EndReason, err)
		}
	}
	if got, err := late.Get(ctx, done.Receipt); err != nil || got.State != "expired" || !strings.HasPrefix(got.Reason, "its entrypoint "+
		"ended at ") {
		t.Errorf("once settled it is %s (%s), %v", got.State, got.Reason, err)
	}
	b.Engine = late
	b.clean()
}

// Its name is free again at once.
func TestAnEntrypointThatEndedKeepsNoName(t *testing.T) {
	t.Parallel()
	b := newRunner(t)
	token := map[string]engine.Secret{"TOKEN": extensions.NewSecret("once")}
	first := b.create(engine.Request{Profile: "profile.runner", Name: "one", Secrets: token})
	if err := vendor.At(b.vendor).Advance(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	b.Engine = b.reopen(ahead(func() time.Duration { return 2 * time.Minute }))
	second := b.create(engine.Request{Profile: "profile.runner", Name: "one", Secrets: token})
	if row, err := b.book().Get(t.Context(), first.ID); err != nil || row.EndReason != "terminated" {
		t.Errorf("the first one ended as %q: %v", row.EndReason, err)
	}
	b.end(second)
	b.clean()
}

func TestAnEntrypointThatCannotRunIsRefused(t *testing.T) {
	t.Parallel()
	b := newRunner(t)
	token := map[string]engine.Secret{"TOKEN": extensions.NewSecret("once")}
	for profile, want := range map[string][2]string{
		"profile.here":  {"unsupported", "viability.entrypoint"},
		"profile.bare":  {"unsupported", "viability.secrets"},
		"profile.short": {"failed", "its entrypoint ended with exit code 3 before the sandbox was ready"},
	} {
		_, err := b.Create(t.Context(), engine.Request{Profile: profile, Name: "x", Secrets: token}, nil, nil)
		if string(extensions.KindOf(err)) != want[0] || !strings.Contains(err.Error(), want[1]) {
			t.Errorf("%s: %v", profile, err)
		}
	}
	b.clean()
}
