//go:build !linux

package tarstream

import "os"

func dataIn(_ *os.File, info os.FileInfo) []extent { return whole(info.Size()) }
