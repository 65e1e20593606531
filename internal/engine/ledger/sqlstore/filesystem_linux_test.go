package sqlstore

import (
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const mountinfo = `22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 22 0:35 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
41 40 0:36 / /home/me/local\040disk rw - xfs /dev/vdb rw
42 22 0:37 / /mnt/s rw - fuse.sshfs me@host: rw
43 22 0:38 / /mnt/s rw - tmpfs tmpfs rw
broken line
`

func TestTheMountThatCountsIsTheLongestAndLatest(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/": "ext4", "/var/lib": "ext4", "/home": "nfs4", "/home/me": "nfs4", "/homeless": "ext4",
		"/home/me/local disk/x": "xfs", "/mnt/s/x": "tmpfs",
	} {
		if got := mountType(mountinfo, path); got != want {
			t.Errorf("%s is on %s, not %s", path, got, want)
		}
	}
	if got := mountType("", "/x"); got != "unknown" {
		t.Errorf("without mounts: %s", got)
	}
}

func TestNetworkFolderIsRefused(t *testing.T) {
	t.Parallel()
	if err := refuse("/home/me", "nfs4", true); !extensions.IsKind(err, extensions.KindUnsupported) ||
		!strings.Contains(err.Error(), "nfs4") || extensions.RemedyOf(err) == "" {
		t.Fatal(err)
	}
	if err := refuse("/x", "ext4", false); err != nil {
		t.Fatal(err)
	}
}
