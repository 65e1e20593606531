package sqlstore

import (
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// networkTypes are file systems whose locks do not hold between machines, or not at all.
var networkTypes = []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "smb2", "9p", "afs", "ceph", "coda", "ncpfs", "ncp", "lustre",
	"glusterfs",
	"gfs", "gfs2", "ocfs2", "gpfs", "beegfs", "orangefs", "pvfs2", "afpfs", "webdav", "davfs", "vboxsf", "vmhgfs", "prl_fs"}

// networkFuse are the fuse file systems that are not local.
var networkFuse = []string{"sshfs", "s3fs", "goofys", "rclone", "gcsfuse", "glusterfs", "ceph", "davfs", "davfs2", "curlftpfs", "juicefs",
	"seaweedfs", "blobfuse", "blobfuse2", "mount-s3", "vmhgfs-fuse", "smbnetfs", "moosefs", "lizardfs"}

// network reports whether a file system type is a network file system.
func network(fsType string) bool {
	fsType = strings.ToLower(fsType)
	if kind, ok := strings.CutPrefix(fsType, "fuse."); ok {
		return slices.Contains(networkFuse, kind)
	}
	return slices.Contains(networkTypes, fsType)
}

// checkFileSystem refuses folders on network file systems.
func checkFileSystem(folder string) error {
	fsType, remote, err := fileSystem(folder)
	if err != nil {
		return fault.Errorf(extensions.KindUnavailable, "reading the ledger's folder %s: %w", folder, err)
	}
	return refuse(folder, fsType, remote)
}

func refuse(folder, fsType string, remote bool) error {
	if !remote {
		return nil
	}
	return fault.Errorf(extensions.KindUnsupported,
		"the ledger's folder %s is on a network file system (%s), where file locks are unreliable", folder,
		fsType).
		WithRemedy("put the ledger on a local disk, or share one in PostgreSQL (postgres://user@host/database)")
}
