package sqlstore

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// fileSystem reports whether the folder's drive is a network drive.
func fileSystem(folder string) (fsType string, remote bool, err error) {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(folder) + `\`)
	if err != nil {
		return "", false, err
	}
	if windows.GetDriveType(root) == windows.DRIVE_REMOTE {
		return "network drive", true, nil
	}
	return "local drive", false, nil
}
