package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const mirrored = "workspace: { mode: mirror, access: rw }\ninputs: { repo: { type: string } }\n"

func TestPreReleaseRunsBeforeTheWorkspaceComesBack(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{"local": onLocal, "vendor": onStub} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := strings.Replace(place, "workspace: { mode: remote-canonical, access: rw }\n", "", 1)
			b := tooled(t, place+mirrored+"toolchain: { pre_release: [\"echo first >> report\", \"echo no such thing >&2; exit 4\", \"echo last "+
				">> report\"] }\n", nil)
			ctx := context.Background()
			begin := func(name string) (engine.Sandbox, string) {
				dir := folder(t, map[string]string{"seed": "x"})
				return b.create(engine.Request{Profile: "profile.t", Name: name, Inputs: map[string]any{"repo": dir}}), dir
			}
			for _, how := range []string{"ledger", "receipt"} {
				s, dir := begin(how)
				back := func() {}
				if how == "receipt" {
					if err := b.Close(); err != nil {
						t.Fatal(err)
					}
					back = b.away()
					b.Engine = b.reopen()
				}
				r, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := read(t, dir, "report"); got != "first\nlast\n" {
					t.Errorf("%s: report: %q", how, got)
				}
				text := notices(r.Notices)
				if !strings.Contains(text, "toolchain.pre_release 2 of 3") || !strings.Contains(text, "exit code 4") {
					t.Errorf("%s: %s", how, text)
				}
				if shown := strings.Contains(text, "printed:\n  no such thing"); shown != (how == "ledger") {
					t.Errorf("%s: the output is shown: %v: %s", how, shown, text)
				}
				if how == "receipt" {
					if err := b.Close(); err != nil {
						t.Fatal(err)
					}
					back()
					b.Engine = b.reopen()
				}
			}
			if left := b.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestWhatPreReleasePrintsIsShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	b := tooled(t, onStub+"toolchain: { pre_release: [\"echo it is $TOKEN; exit 1\"] }\n", nil)
	for _, e := range []*engine.Engine{b.Engine, b.reopen()} {
		s := b.create(engine.Request{Profile: "profile.t", Name: "one",
			Secrets: map[string]engine.Secret{"TOKEN": extensions.NewSecret("hush-hush")}})
		r, err := e.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{})
		if text := notices(r.Notices); err != nil || !strings.Contains(text, "exit code 1") || strings.Contains(text, "hush-hush") ||
			!strings.Contains(text, "it is [redacted]") {
			t.Errorf("%v %s", err, text)
		}
	}
	b.clean()
}

func TestPreReleaseIsBoundedAndLeftOutWhereNothingCanRun(t *testing.T) {
	t.Parallel()
	b := tooled(t, onStub+"toolchain: { pre_release: [{ run: \"sleep 600\", timeout: 1s }] }\n", nil)
	ctx := context.Background()
	begun := time.Now()
	s := b.create(engine.Request{Profile: "profile.t", Name: "one"})
	r, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if text := notices(r.Notices); err != nil || !strings.Contains(text, "1s") || time.Since(begun) > 5*time.Minute {
		t.Errorf("slow: %v after %s: %s", err, time.Since(begun), text)
	}
	s = b.create(engine.Request{Profile: "profile.t", Name: "two"})
	b.removeAll() // behind our back
	if r, err = b.Destroy(ctx, s.Receipt, engine.DestroyOptions{}); err != nil || strings.Contains(notices(r.Notices), "pre_release") {
		t.Errorf("gone: %v %s", err, notices(r.Notices))
	}
	b.clean()
}

func TestPreReleaseRunsBeforeASandboxIsMadeAnew(t *testing.T) {
	t.Parallel()
	b := tooled(t, onLocal+mirrored+"toolchain: { pre_release: [\"echo released >> report\"] }\n", nil)
	dir := folder(t, map[string]string{"seed": "x"})
	s := b.create(engine.Request{Profile: "profile.t", Name: "one", Inputs: map[string]any{"repo": dir}})
	var told []string
	again, err := b.Recreate(context.Background(), s.Receipt, nil, func(n engine.Notice) { told = append(told, n.Summary) })
	if err != nil || read(t, dir, "report") != "released\n" || !strings.Contains(fmt.Sprint(told), "Running pre_release 1 of 1") {
		t.Fatalf("%v, report %q, told %v", err, read(t, dir, "report"), told)
	}
	if _, err := b.Destroy(context.Background(), again.Receipt, engine.DestroyOptions{}); err != nil ||
		read(t, dir, "report") != "released\nreleased\n" {
		t.Errorf("%v, report %q", err, read(t, dir, "report"))
	}
	b.clean()
}

func TestPreReleaseLeavesTheEndItsTime(t *testing.T) {
	t.Parallel()
	takesLong(t)
	b := tooled(t, onStub+"toolchain: { pre_release: [\"sleep 600\", \"sleep 601\"] }\n", nil)
	s := b.create(engine.Request{Profile: "profile.t", Name: "one"})
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancel()
	r, err := b.Destroy(ctx, s.Receipt, engine.DestroyOptions{})
	if text := notices(r.Notices); err != nil || !strings.Contains(text, "sleep 600") ||
		!strings.Contains(text, "Some pre_release commands did not run") {
		t.Errorf("%v: %s", err, text)
	}
	if left := b.left(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	b.clean()
}

func TestPreReleaseRunsBeforeASweepEndsWhatStillRuns(t *testing.T) {
	t.Parallel()
	place := strings.Replace(onStub, "workspace: { mode: remote-canonical, access: rw }\n", "", 1)
	b := tooled(t, place+mirrored+"toolchain: { pre_release: [\"echo swept >> report\"] }\n", nil)
	dir := folder(t, map[string]string{"seed": "x"})
	b.create(engine.Request{Profile: "profile.t", Name: "one", TTL: "10m", Inputs: map[string]any{"repo": dir}})
	b.Now = func() time.Time { return time.Now().Add(20 * time.Minute) } // the vendor's clock is another
	if _, err := b.reopen().Sweep(context.Background(), false, nil); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, "report"); got != "swept\n" || len(b.left()) > 0 {
		t.Errorf("report %q, left %v", got, b.left())
	}
}
