package sqlstore

import "golang.org/x/sys/unix"

// fileSystem returns the type of the folder's file system.
func fileSystem(folder string) (fsType string, remote bool, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return "", false, err
	}
	return unix.ByteSliceToString(st.Fstypename[:]), st.Flags&unix.MNT_LOCAL == 0, nil
}
