//go:build linux

package local

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// indexed downloads the workspace and lists what it holds.
func indexed(t *testing.T, b *Backend, h extensions.Handle) (tarstream.Manifest, int) {
	t.Helper()
	var out bytes.Buffer
	must(t, b.Download(t.Context(), h, ".", &out))
	c, err := tarstream.Index(t.Context(), io.NewSectionReader(bytes.NewReader(out.Bytes()), 0, int64(out.Len())), tarstream.Options{})
	must(t, err)
	return c.Manifest, out.Len()
}

// What a program can make in its workspace, a snapshot keeps and a restore under
// the same limits brings back, and a fork has: names of any bytes, paths beyond what one call
// takes, files and folders shut to their owner, holes, and many names of one file
// that together would not fit.
func TestAWorkspaceOfAnyKindIsKeptAndRestored(t *testing.T) {
	t.Parallel()
	b := openBackend(t, t.TempDir(), nil)
	disk := int64(64)
	spec := testSpec(t)
	spec.Resources = extensions.Resources{DiskMB: &disk, BestEffort: true}
	h := provision(t, b, spec)
	r := shell(t, b, h, `set -e
truncate -s 1T hole
printf x | dd of=island bs=1 seek=100000000000 2>/dev/null
dd if=/dev/zero of=one bs=1M count=20 2>/dev/null
for i in 1 2 3 4 5 6 7 8; do ln one one$i; done
printf 1 >"$(printf 'l\nb')"; printf 2 >"$(printf 'caf\351')"; ln -s "$(printf 'to\377\n')" "$(printf '\377')"
echo shut >shut; chmod 0 shut
mkdir locked; echo in >locked/in; chmod 0 locked
n=$(head -c 250 /dev/zero | tr '\0' n)
i=0; while [ $i -lt 20 ]; do mkdir $n; cd -P $n; i=$((i+1)); done; echo deep >f`)
	if r.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	id, err := extensions.NewSnapshotID(nil)
	must(t, err)
	snap, err := b.Snapshot(t.Context(), h, extensions.SnapshotSpec{ID: id, Account: "acme/web", CreatedAt: time.Now()})
	must(t, err)
	t.Cleanup(func() { must(t, b.DeleteSnapshot(context.Background(), snap.Handle)) })
	if snap.SizeBytes > 25<<20 {
		t.Errorf("the snapshot has %d bytes", snap.SizeBytes)
	}
	again := testSpec(t)
	again.Resources, again.FromSnapshot = spec.Resources, &extensions.SnapshotRef{ID: id, Handle: snap.Handle}
	restored, forked := provision(t, b, again), provision(t, b, forkOf(t, spec, h))
	want, size := indexed(t, b, h)
	for _, one := range []extensions.Handle{restored, forked} {
		got, _ := indexed(t, b, one)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if r := shell(t, b, one, "stat -c %a shut locked"); string(r.Stdout) != "0\n0\n" {
			t.Errorf("the modes are %q", r.Stdout)
		}
	}
	if len(want.Entries) != 38 || size > 25<<20 {
		t.Errorf("%d entries in %d bytes", len(want.Entries), size)
	}
}
