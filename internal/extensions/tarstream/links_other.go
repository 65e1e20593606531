//go:build !unix

package tarstream

import "os"

type fileID struct{}

func severalNames(os.FileInfo) (fileID, bool) { return fileID{}, false }
