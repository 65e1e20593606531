package docker

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// withVolume is the test's image with a volume at /data, which the image has a file in.
func withVolume(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("sandboxer-test-volume-%d:latest", siteNo.Add(1))
	from := docker(t, "create", "--network", "none", "--user", "root", hosttest.Image(t), "sh", "-c", "mkdir -m 777 /data && echo image >/data/image && chmod 666 /data/image")
	t.Cleanup(func() { docker(t, "image", "rm", name) })
	docker(t, "start", "--attach", from)
	docker(t, "commit", "--change", "VOLUME /data", "--change", `CMD ["sh"]`, "--change", "USER sandbox", from, name)
	docker(t, "rm", from)
	return name
}

// stack is a spec of an agent with a service that writes to its files and its volume.
func (s *site) stack(t testing.TB, image string, opts ...exttest.Option) extensions.Spec {
	t.Helper()
	return exttest.Spec(t, s.config, append([]exttest.Option{exttest.With(func(s *extensions.Spec) {
		s.Containers = &extensions.Containers{
			Agent: extensions.Container{Image: extensions.Image{Pull: hosttest.Image(t)}, Hostname: "main", Command: []string{"sleep", "7777"},
				Environment: map[string]string{"WORD": "agent"}},
			Services: map[string]extensions.Container{"db": {Image: extensions.Image{Pull: image}, Hostname: "database",
				Command: []string{"sh", "-c", "echo $$ >>/tmp/starts; sleep 8888"}, Environment: map[string]string{"WORD": "service"}}}}
	})}, opts...)...)
}

// become makes a sandbox that lives until the test ends.
func (s *site) become(t testing.TB, b *Backend, spec extensions.Spec) extensions.Handle {
	t.Helper()
	h, _, err := b.Provision(t.Context(), spec)
	must(t, err)
	t.Cleanup(func() {
		_, err := b.Teardown(context.Background(), h)
		must(t, err)
	})
	_, err = b.WaitReady(t.Context(), spec, h)
	must(t, err)
	return h
}

func inside(t testing.TB, b *Backend, h extensions.Handle, service, script string) string {
	t.Helper()
	r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: script, Service: service})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%s: exit code %d, %v: %s", script, r.ExitCode, err, r.Stderr)
	}
	return strings.TrimSpace(string(r.Stdout))
}

// keep takes a snapshot that lives until the test ends.
func (s *site) keep(t testing.TB, b *Backend, h extensions.Handle, kind extensions.SnapshotKind) extensions.Snapshot {
	t.Helper()
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	made, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Name: "kept", Account: s.config.Account, CreatedAt: time.Now(), Kind: kind})
	must(t, err)
	t.Cleanup(func() { must(t, b.DeleteSnapshot(context.Background(), made.Handle)) })
	return made
}

// from makes a spec start from a snapshot.
func from(spec extensions.Spec, s extensions.Snapshot) extensions.Spec {
	spec.FromSnapshot = &extensions.SnapshotRef{ID: s.Handle.ID, Handle: s.Handle}
	spec.Labels = exttest.Labels(spec)
	return spec
}

func forkOf(spec extensions.Spec, h extensions.Handle) extensions.Spec {
	spec.FromSandbox, spec.Source = h.ID, h
	spec.Labels = exttest.Labels(spec)
	return spec
}

func TestACopyHasAllContainersVolumesAndNames(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b, image := s.open(t), withVolume(t)
	source := s.become(t, b, s.stack(t, image, exttest.WithSecret("A", "old")))
	inside(t, b, source, "", "echo agent >f; echo home >~/f; ln -s f l; mkfifo pipe")
	inside(t, b, source, "db", "rm /data/image; echo service >/data/f; chmod 640 /data/f; ln -s f /data/l; echo x >/tmp/f")
	snapshot := s.keep(t, b, source, "")
	if snapshot.Kind != extensions.SnapshotFilesystem || snapshot.SizeBytes == 0 || snapshot.SizeBytes > 1<<20 {
		t.Errorf("%+v", snapshot)
	}
	later := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	anew := func() extensions.Spec {
		return s.stack(t, image, exttest.WithSecret("A", "new"), exttest.With(func(s *extensions.Spec) { s.Deadline = later }))
	}
	for what, spec := range map[string]extensions.Spec{"a restored one": from(anew(), snapshot), "a fork": forkOf(anew(), source)} {
		h := s.become(t, b, spec)
		for _, want := range []struct{ service, script, out string }{
			{"", "cat f ~/f l; test -p pipe && hostname; echo $WORD $A $SANDBOXER_ID", "agent\nhome\nagent\nmain\nagent new " + string(h.ID)},
			{"", "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q '[s]leep 7777' && grep -c database /etc/hosts", "1"},
			{"db", "cat /data/l; ls /data; stat -c '%a %U' /data/f; cat /tmp/f; echo $WORD; wc -l </tmp/starts", "service\nf\nl\n640 sandbox\nx\nservice\n2"},
		} {
			if got := inside(t, b, h, want.service, want.script); got != want.out {
				t.Errorf("%s: %s: %q, want %q", what, want.script, got, want.out)
			}
		}
		o, err := b.Status(t.Context(), []extensions.Handle{h})
		if err != nil || !o[0].Deadline.Equal(later) || o[0].Phase != extensions.PhaseReady {
			t.Errorf("%s: %+v, %v", what, o, err)
		}
		inside(t, b, h, "", "echo changed >f")
		inside(t, b, h, "db", "echo changed >/data/f")
	}
	if got := inside(t, b, source, "", "cat f") + inside(t, b, source, "db", "cat /data/f; wc -l </tmp/starts"); got != "agentservice\n1" {
		t.Errorf("the source reads %q", got)
	}
}

func TestACopyHasNoSecret(t *testing.T) {
	t.Parallel()
	const canary = "canary-Yoh7eeQu9ahB"
	for _, as := range extensions.SecretDeliveries {
		s := newSite(t)
		b := s.open(t)
		h := s.become(t, b, s.stack(t, withVolume(t), exttest.WithSecret("CANARY", canary), exttest.WithSecretsAs(as)))
		if got := inside(t, b, h, "", `printf %s "${CANARY-$(cat /run/secrets/CANARY)}"`); got != canary {
			t.Fatalf("inside it is %q", got)
		}
		s.keep(t, b, h, extensions.SnapshotFilesystem)
		s.keep(t, b, h, extensions.SnapshotWorkspace)
		fork := s.become(t, b, forkOf(s.stack(t, withVolumeOf(t, b, h)), h))
		if got := inside(t, b, fork, "", `printf %s "${CANARY-$(cat /run/secrets/CANARY 2>/dev/null)}"`); got != "" {
			t.Errorf("%s: the fork has %q", as, got)
		}
		images := s.list(t, "image")
		if len(images) < 4 {
			t.Errorf("%s: %d images", as, len(images))
		}
		for _, text := range s.outside(t) {
			if strings.Contains(text, canary) {
				t.Errorf("%s: the secret is in %.300q", as, text)
			}
		}
	}
}

// withVolumeOf is the image of the service of a sandbox.
func withVolumeOf(t testing.TB, b *Backend, h extensions.Handle) string {
	found, err := b.look(t.Context(), h.ID)
	must(t, err)
	c, _ := found.service("db")
	return strings.Fields(docker(t, "image", "inspect", "--format", `{{join .RepoTags " "}}`, c.ImageID))[0]
}

func TestASnapshotStopsNothingForLong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b)
	inside(t, b, h, "", "(while :; do date +%s%N >>ticks; sleep 0.05; done) >/dev/null 2>&1 &")
	s.keep(t, b, h, "")
	inside(t, b, h, "", "n=$(wc -l <ticks); until test $(wc -l <ticks) -gt $n; do sleep 0.1; done")
	_, err := b.Pause(t.Context(), h)
	must(t, err)
	kept := s.keep(t, b, h, extensions.SnapshotWorkspace)
	if o, err := b.Status(t.Context(), []extensions.Handle{h}); err != nil || o[0].Phase != extensions.PhasePaused {
		t.Errorf("after a snapshot of a paused one: %+v, %v", o, err)
	}
	_, err = b.Resume(t.Context(), h, time.Time{})
	must(t, err)
	spec := from(onImage(t, exttest.Spec(t, s.config)), kept)
	if got := inside(t, b, s.become(t, b, spec), "", "ls"); got != "ticks" {
		t.Errorf("restored: %q", got)
	}
}

func TestWhatIsTooLargeIsNotCopied(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b)
	inside(t, b, h, "", "truncate -s 900G hole")
	kinds := []extensions.SnapshotKind{extensions.SnapshotWorkspace, extensions.SnapshotFilesystem}
	if strings.Contains(docker(t, "info", "--format", "{{.DriverStatus}}"), "io.containerd.snapshotter") {
		kinds = kinds[:1] // it counts no holes, and would compress them for an hour, whoever has left
	}
	for _, kind := range kinds {
		id, err := extensions.NewSnapshotID(nil)
		must(t, err)
		begun := time.Now()
		_, err = b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Account: s.config.Account, CreatedAt: begun, Kind: kind})
		if !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "larger than") ||
			time.Since(begun) > 5*time.Minute { // to its end it takes hours
			t.Errorf("%s: %v after %s", kind, err, time.Since(begun))
		}
		if _, err := b.FindSnapshot(t.Context(), id); !extensions.IsKind(err, extensions.KindNotFound) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if o, err := b.Status(t.Context(), []extensions.Handle{h}); err != nil || o[0].Phase != extensions.PhaseReady {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestACommitIsBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b)
	b.commitTime = time.Nanosecond
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	_, err = b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Account: s.config.Account, CreatedAt: time.Now(),
		Kind: extensions.SnapshotFilesystem})
	if !extensions.IsKind(err, extensions.KindTimeout) || !strings.Contains(err.Error(), "within 1ns") || extensions.RemedyOf(err) == "" {
		t.Errorf("%v; remedy %q", err, extensions.RemedyOf(err))
	}
	if o, err := b.Status(t.Context(), []extensions.Handle{h}); err != nil || o[0].Phase != extensions.PhaseReady {
		t.Errorf("%+v, %v", o, err)
	}
	if left := s.list(t, "image"); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	for size, want := range map[int64]time.Duration{0: commitTime, 200 << 20: commitTime + 25*time.Second, 1 << 40: maxCommitTime} {
		if got := commitLimit(commitTime, &size); got != want {
			t.Errorf("%d bytes may take %s, want %s", size, got, want)
		}
	}
}

func TestADeletedSnapshotLeavesWhatWasMadeOfIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b)
	inside(t, b, h, "", "echo kept >f")
	kept := s.keep(t, b, h, "")
	restored, _, err := b.Provision(t.Context(), from(onImage(t, exttest.Spec(t, s.config)), kept))
	must(t, err)
	must(t, b.DeleteSnapshot(t.Context(), kept.Handle))
	fork, _, err := b.Provision(t.Context(), forkOf(onImage(t, exttest.Spec(t, s.config)), restored))
	must(t, err)
	for _, h := range []extensions.Handle{restored, fork} {
		if got := inside(t, b, h, "", "cat f"); got != "kept" {
			t.Errorf("%q", got)
		}
	}
	for _, h := range []extensions.Handle{restored, fork} {
		_, err := b.Teardown(t.Context(), h)
		must(t, err)
	}
	if left := s.list(t, "image"); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestAChangedSnapshotIsNotRestored(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.stack(t, withVolume(t))
	h := s.become(t, b, spec)
	kept, other := s.keep(t, b, h, ""), s.keep(t, b, h, "")
	docker(t, "image", "tag", reference(other.Handle.ID, tagContainer+"0"), reference(kept.Handle.ID, tagContainer+"0"))
	again := s.stack(t, spec.Containers.Services["db"].Image.Pull)
	if _, _, err := b.Provision(t.Context(), from(again, kept)); !extensions.IsKind(err, extensions.KindInvalid) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v", err)
	}
	if _, _, err := b.Provision(t.Context(), from(onImage(t, exttest.Spec(t, s.config)), other)); !extensions.IsKind(err, extensions.KindInvalid) {
		t.Errorf("with other containers: %v", err)
	}
}

func TestASnapshotKilledAtAnyStepIsUndone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := s.stack(t, withVolume(t))
	h := s.become(t, s.open(t), spec)
	before := s.residue(t)
	for _, kind := range []extensions.SnapshotKind{extensions.SnapshotFilesystem, extensions.SnapshotWorkspace} {
		for step := 1; ; step++ {
			id, err := extensions.NewSnapshotID(nil)
			must(t, err)
			b := s.open(t)
			at := dieAt(b, step, func() {
				_, _ = b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Account: s.config.Account, CreatedAt: time.Now(), Kind: kind})
			})
			b = s.open(t)
			found, err := b.FindSnapshot(t.Context(), id)
			if err == nil {
				err = b.DeleteSnapshot(t.Context(), found.Handle)
			} else if extensions.IsKind(err, extensions.KindNotFound) {
				err = nil
			}
			must(t, err)
			if got := inside(t, b, h, "db", "echo runs"); got != "runs" {
				t.Errorf("%s at %s: the source is %q", kind, at, got)
			}
			if left := s.residue(t); len(left) != len(before) {
				t.Errorf("%s at %s: left %q", kind, at, left)
			}
			if at == "" {
				if step < 6 {
					t.Errorf("only %d steps", step-1)
				}
				break
			}
		}
	}
}

// A source that goes while it is copied is named; what the engine says of its container helps nobody.
func TestAForkWhoseSourceEndsMeanwhileNamesIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := s.stack(t, withVolume(t))
	for _, at := range []string{"held", "committed"} {
		there := s.open(t)
		h, _, err := there.Provision(t.Context(), spec)
		must(t, err)
		again := forkOf(s.stack(t, spec.Containers.Services["db"].Image.Pull), h)
		b := s.open(t)
		b.onStep = func(step string) {
			if step == at {
				_, err := there.Teardown(t.Context(), h)
				must(t, err)
			}
		}
		_, _, err = b.Provision(t.Context(), again)
		if !extensions.IsKind(err, extensions.KindNotFound) || extensions.RemedyOf(err) == "" ||
			!strings.Contains(err.Error(), "the sandbox "+string(h.ID)+" ended") || strings.Contains(err.Error(), "No such container") {
			t.Errorf("at %s: %v", at, err)
		}
		if left := s.residue(t); len(left) != 0 {
			t.Errorf("at %s: left %q", at, left)
		}
	}
}

func TestAForkKilledAtAnyStepIsMadeOnceOrUndone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := s.stack(t, withVolume(t))
	h := s.become(t, s.open(t), spec)
	before := s.residue(t)
	for step := 1; ; step++ {
		again := forkOf(s.stack(t, spec.Containers.Services["db"].Image.Pull), h)
		b := s.open(t)
		at := dieAt(b, step, func() { _, _, _ = b.Provision(t.Context(), again) })
		b = s.open(t)
		found, err := b.Find(t.Context(), again.ID)
		if step%2 == 0 || at == "" {
			found, _, err = b.Provision(t.Context(), again)
			must(t, err)
		}
		if err == nil {
			_, err = b.Teardown(t.Context(), found)
		} else if extensions.IsKind(err, extensions.KindNotFound) {
			err = nil
		}
		must(t, err)
		if got := inside(t, b, h, "db", "echo runs"); got != "runs" {
			t.Errorf("%s: the source is %q", at, got)
		}
		if left := s.residue(t); len(left) != len(before) {
			t.Errorf("%s: left %q", at, left)
		}
		if at == "" {
			if step < 12 {
				t.Errorf("only %d steps", step-1)
			}
			return
		}
	}
}

// An engine carries out what it was sent, however late, and whoever has died since.
func TestWhatAnEngineMakesLateIsNotLeftBehind(t *testing.T) {
	t.Parallel()
	for _, name := range []string{nameNew, nameService + "web"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			spec := s.whole(t)
			late := s.gate.holdBack("/containers/create?name=" + string(spec.ID) + name)
			if _, _, err := s.open(t).Provision(t.Context(), spec); !extensions.IsKind(err, extensions.KindIndeterminate) {
				t.Fatalf("it was cut off: %v", err)
			}
			there := s.open(t)
			h, err := there.Find(t.Context(), spec.ID)
			must(t, err)
			_, err = there.Teardown(t.Context(), h)
			must(t, err)
			late()
			if left := s.residue(t); len(left) != 0 {
				t.Errorf("left %q", left)
			}
			if left := docker(t, "image", "ls", "--quiet", reference(string(spec.ID), ".*")); left != "" {
				t.Errorf("left the image %s", left)
			}
		})
	}
}

func TestLimitsAreAlwaysSet(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h, _ := s.provision(t, b)
	found, err := b.look(t.Context(), h.ID)
	must(t, err)
	out, err := exec.Command("docker", "inspect", "--format", "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.PidsLimit}}",
		found.agent().ID).Output()
	must(t, err)
	if got := strings.TrimSpace(string(out)); got != "4294967296 4294967296 512" {
		t.Errorf("memory, swap and processes are limited to %s", got)
	}
}

// A network that an engine made after its sandbox was removed goes once it is old, and nobody else's.
func TestALateNetworkGoesWithALaterSandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	live := s.become(t, b, s.whole(t))
	id, err := extensions.NewID(nil)
	must(t, err)
	late := string(id) + nameNetwork
	docker(t, "network", "create", "--internal", "--subnet", "10.213.255.240/29", "--label", labelHandler+"="+Handler, "--label",
		extensions.LabelID+"="+string(id), "--label", extensions.LabelAccount+"="+s.config.Account, late)
	list, err := b.engine.NetworkList(t.Context(), client.NetworkListOptions{})
	must(t, err)
	b.sweepNetworks(t.Context(), list.Items)
	if got := fmt.Sprint(s.list(t, "network")); !strings.Contains(got, late) {
		t.Error("a network whose create may be under way was removed")
	}
	for i := range list.Items {
		list.Items[i].Created = time.Now().Add(-2 * unusedTime)
	}
	b.sweepNetworks(t.Context(), list.Items)
	if got := s.list(t, "network"); len(got) != 1 || got[0].name != string(live.ID)+nameNetwork {
		t.Errorf("networks: %v", got)
	}
}
