package sqlstore

import (
	"os"
	"path/filepath"
	"strings"
)

// fileSystem returns the type of the folder's file system.
func fileSystem(folder string) (fsType string, remote bool, err error) {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", false, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "unknown", false, nil // without /proc nothing is known
	}
	fsType = mountType(string(mounts), real)
	return fsType, network(fsType), nil
}

// mountType returns the type of the last mount with the longest prefix of path, according to
// /proc/self/mountinfo.
func mountType(mountinfo, path string) string {
	best, fsType := -1, "unknown"
	for _, line := range strings.Split(mountinfo, "\n") {
		before, after, ok := strings.Cut(line, " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 5 || len(tail) < 1 {
			continue
		}
		point := unescapeMount(head[4])
		if within(path, point) && len(point) >= best {
			best, fsType = len(point), tail[0]
		}
	}
	return fsType
}

func within(path, folder string) bool {
	return folder == "/" || path == folder || strings.HasPrefix(path, folder+"/")
}

// unescapeMount undoes the kernel's octal escapes of blanks and backslashes.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
