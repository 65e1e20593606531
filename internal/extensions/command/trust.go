package command

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxLinks bounds the symbolic links on the way to a program.
const maxLinks = 40

// resolve returns the file that path leads to, and refuses it if anybody but root and this user could have put it
// there: the file, every folder and every link on the way belong to one of them, and no others can write them, except
// a folder whose entries only their owners can change (sticky).
func resolve(path string) (string, error) {
	refuse := func(at, why string) (string, error) {
		return "", extensions.Errorf(extensions.KindUnauthorized, "the program %s cannot be trusted: %s %s", path, at, why).
			WithRemedy("keep it where only root or you can write: `chmod go-w` the file and the folders above it")
	}
	done, rest, links := "/", "."+path, 0
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		if part == "" {
			continue
		}
		at := filepath.Join(done, part)
		info, err := os.Lstat(at)
		if err != nil {
			return "", extensions.Errorf(extensions.KindInvalid, "the program %s cannot be found: %w", path, err).At("config.command")
		}
		if !ours(info) {
			return refuse(at, "belongs to another user")
		}
		mode := info.Mode()
		switch {
		case mode&os.ModeSymlink != 0:
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return refuse(at, "is a broken link")
			}
			if filepath.IsAbs(to) {
				done = "/"
			}
			rest = to + "/" + rest
			continue
		case mode.Perm()&0o022 != 0 && !(mode.IsDir() && mode&os.ModeSticky != 0):
			return refuse(at, "can be written by others")
		case mode.IsDir():
		case !mode.IsRegular() || strings.Trim(rest, "/") != "" || mode.Perm()&0o111 == 0:
			return refuse(at, "is not an executable file")
		}
		done = at
	}
	if info, err := os.Lstat(done); err != nil || !info.Mode().IsRegular() {
		return refuse(done, "is not an executable file")
	}
	return done, nil
}

// digestOf returns what a file holds, as "sha256:" and 64 hex digits.
func digestOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
