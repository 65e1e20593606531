//go:build linux

package initd

import (
	"os"
	"testing"
)

func TestACgroupOfEitherVersionIsTakenAtItsWord(t *testing.T) {
	t.Parallel()
	const bound = 256 << 20
	for what, c := range map[string]struct {
		stat string
		left bool
	}{
		"version 2, cache beyond the bound":    {"anon 104857600\nfile 1073741824\nkernel 4096\nshmem 1048576\n", true},
		"version 2, programs beyond the bound": {"anon 524288000\nfile 0\nshmem 0\n", false},
		"version 2, shared memory beyond it":   {"anon 1048576\nfile 524288000\nshmem 524288000\n", false},
		"version 1, cache beyond the bound": {"cache 1073741824\nrss 1\nshmem 1\nswap 0\ntotal_cache 1073741824\ntotal_rss " +
			"104857600\ntotal_shmem 1048576\ntotal_swap 0\n", true},
		"version 1, programs beyond the bound": {"rss 1\nshmem 1\ntotal_rss 524288000\ntotal_rss_huge 524288000\ntotal_shmem 0\ntotal_swap 0\n",
			false},
		"version 1, swapped out": {"rss 1\ntotal_rss 1048576\ntotal_shmem 0\ntotal_swap 524288000\n", false},
	} {
		f, err := os.CreateTemp(t.TempDir(), "memory.stat")
		if err == nil {
			_, err = f.WriteString(c.stat)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		s := &server{cfg: Config{Walls: true, Counted: true, WatchMemory: bound}, files: Files{Memory: f}}
		if s.memoryLeft() != c.left {
			t.Errorf("%s: memory left: %v", what, !c.left)
		}
	}
}
