package initd

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// sum adds up the numbers on those lines of a kernel file that start with one of the names, blank or colon
// included.
func sum(text []byte, names ...string) (total int64) {
	for line := range bytes.Lines(text) {
		for _, name := range names {
			after, ok := bytes.CutPrefix(line, []byte(name))
			if f := bytes.Fields(after); ok && len(f) > 0 {
				n, _ := strconv.ParseInt(string(f[0]), 10, 64)
				total += n
			}
		}
	}
	return total
}

const kB = 1 << 10 // the unit of /proc

// ownAnon returns this process's memory, without the pages of its executable, which its starter holds.
func ownAnon() int64 {
	text, _ := os.ReadFile("/proc/self/status")
	return sum(text, "RssAnon:") * kB
}

// rss returns a process's memory and swap, including everything it shares. It leaves out pages of files on
// disk, which the kernel can take back.
func rss(pid int) int64 {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return sum(text, "RssAnon:", "RssShmem:", "VmSwap:") * kB
}

// pss returns a process's memory and swap, with its share of what is shared. If the process does not let us
// look, it returns rss; otherwise a hog would only have to hide.
func pss(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		return rss(pid)
	}
	return sum(text, "Pss_Anon:", "Pss_Shmem:", "SwapPss:") * kB
}

// mapped returns a process's share of the files it has mapped from the folders.
func mapped(pid int, folders map[uint64]string) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps")
	if err != nil {
		return 0
	}
	own, used := false, int64(0)
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		switch {
		case len(f) >= 5 && bytes.IndexByte(f[0], '-') > 0: // address, rights, offset, device, inode
			own = false
			for dev := range maps.Keys(folders) {
				own = own || string(f[3]) == fmt.Sprintf("%02x:%02x", unix.Major(dev), unix.Minor(dev))
			}
		case own:
			used += sum(line, "Pss:") - sum(line, "Anonymous:") // a page written in a private view is the program's
		}
	}
	return max(used, 0) * kB
}

// ownFolders returns the sandbox's writable folders, one per file system.
func ownFolders(cfg Config) map[uint64]string {
	folders := map[uint64]string{}
	for _, dir := range []string{cfg.Workspace, cfg.Home, "/tmp", "/run", "/dev/shm"} {
		var st unix.Stat_t
		if dir != "" && unix.Stat(dir, &st) == nil {
			folders[st.Dev] = dir
		}
	}
	return folders
}

// filesUse returns what the files in the folders occupy, which is memory.
func filesUse(folders map[uint64]string) (used int64) {
	for _, dir := range folders {
		var st unix.Statfs_t
		if unix.Statfs(dir, &st) == nil {
			used += int64(st.Blocks-st.Bfree) * int64(st.Bsize) //nolint:unconvert // its width differs between processors
		}
	}
	return used
}

// counted reads from memory.stat, of either cgroup version, what a cgroup holds in memory and swap that the
// kernel cannot simply drop.
func counted(stat *os.File) (int64, error) {
	text, err := io.ReadAll(io.NewSectionReader(stat, 0, 64<<10))
	if err != nil {
		return 0, err
	}
	names := []string{"anon ", "shmem "}
	if bytes.Contains(text, []byte("total_rss ")) {
		names = []string{"total_rss ", "total_swap ", "total_shmem "}
	}
	return sum(text, names...), nil
}
