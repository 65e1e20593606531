package sqlstore

import "testing"

func TestNetworkFileSystems(t *testing.T) {
	t.Parallel()
	for fsType, want := range map[string]bool{
		"ext4": false, "xfs": false, "btrfs": false, "zfs": false, "tmpfs": false, "overlay": false, "apfs": false, "fuseblk": false,
		"fuse.fuse-overlayfs": false, "unknown": false, "nfs": true, "nfs4": true, "NFS4": true, "cifs": true, "smb3": true, "9p": true,
		"ceph":       true,
		"fuse.sshfs": true, "fuse.rclone": true, "fuse.gcsfuse": true, "afpfs": true,
	} {
		if network(fsType) != want {
			t.Errorf("%s: %t", fsType, !want)
		}
	}
}
