package walls

import (
	"golang.org/x/sys/unix"
)

// OpenReadOnly returns a descriptor of the same file on a mount of its own that nobody can write through, and that is
// attached nowhere. With path "", dirfd is the file; with AT_FDCWD, path names it. It takes the right to mount.
func OpenReadOnly(dirfd int, path string) (int, error) {
	fd, err := unix.OpenTree(dirfd, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// GuardExe replaces fd by the same file on a mount as of [OpenReadOnly]. It refuses another file at path.
func GuardExe(path string, fd int) error {
	guarded, err := OpenReadOnly(unix.AT_FDCWD, path)
	if err != nil {
		return step("executable", err)
	}
	defer func() { _ = unix.Close(guarded) }()
	var have, want unix.Stat_t
	if err := unix.Fstat(guarded, &have); err != nil {
		return step("executable", err)
	}
	if err := unix.Fstat(fd, &want); err != nil {
		return step("executable", err)
	}
	if have.Dev != want.Dev || have.Ino != want.Ino { // replaced just now
		return step("executable", unix.ESTALE)
	}
	return step("executable", unix.Dup3(guarded, fd, unix.O_CLOEXEC))
}
