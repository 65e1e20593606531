// Package workspace makes the tar stream that a sandbox's workspace starts from, out of a local folder or
// a git repository, and brings a mirrored workspace back into its folder.
//
// # Folders
//
// A folder is taken as it is now; a ref has no meaning for it. Its .sandboxerignore, or if that is missing
// its .dockerignore, names what is left out, in Docker's syntax, "!" included. As with Docker, .git and
// the ignore file itself belong to the workspace unless they are ignored.
//
// # Git
//
// A repository is an https://, ssh:// or file:// URL or [user@]host:path. The ref is a branch, else a tag,
// else a full or short commit; it is resolved to a full commit first. Files arrive byte for byte as
// committed: no hook, filter, line-end conversion or export attribute applies. Git LFS files arrive as
// their pointers, submodules as empty folders (and are reported). There is no .git unless the history is
// requested. Passwords in URLs never reach an argument list, a message or the stream.
package workspace

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Options configure a source.
type Options struct {
	// SpoolDir holds the stream and git's objects while they are needed. It is created with mode 0700 if
	// missing.
	SpoolDir   string
	MaxBytes   int64 // 0 = tarstream.DefaultMaxBytes (2 GiB)
	MaxEntries int64 // 0 = tarstream.DefaultMaxEntries (200 000)
	// FullHistory keeps .git of a git source, with all branches and tags.
	FullHistory bool
}

func (o Options) tar() tarstream.Options {
	return tarstream.Options{MaxBytes: o.MaxBytes, MaxEntries: o.MaxEntries}
}

// Open builds the stream of repo at ref and keeps it until Source.Close. A wrong request is KindInvalid, a
// refused credential KindUnauthorized, an unreachable server KindUnreachable.
func Open(ctx context.Context, repo, ref string, opts Options) (*Source, error) {
	loc, err := parse(repo, ref)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(opts.SpoolDir, 0o700); err != nil {
		return nil, extensions.Errorf(extensions.KindInvalid, "the spool folder cannot be created: %w", err)
	}
	sweepSpool(opts.SpoolDir)
	if loc.folder != "" {
		return openFolder(ctx, loc, opts)
	}
	return openGit(ctx, loc, ref, opts)
}

// Check returns, without network and without writing, what makes repo and ref unusable: a folder that is
// missing, unreadable or no folder; a malformed URL; a protocol that is not allowed; a malformed ref. An
// empty repo is a valid, empty workspace. Errors are KindInvalid with a remedy.
func Check(repo, ref string) error {
	if repo == "" {
		return nil
	}
	loc, err := parse(repo, ref)
	if err != nil || loc.folder == "" {
		return err
	}
	return checkFolder(loc.folder)
}

// IsFolder reports whether repo names a folder on this machine.
func IsFolder(repo string) bool {
	loc, err := parse(repo, "")
	return err == nil && loc.folder != ""
}

func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	shown := extensions.Clean(dir, 300)
	switch {
	case os.IsNotExist(err):
		return extensions.Errorf(extensions.KindInvalid, "the workspace folder %q does not exist", shown).
			WithRemedy("Create it, correct the path, or give a git URL (https://, ssh:// or user@host:path).")
	case err != nil:
		return extensions.Errorf(extensions.KindInvalid, "the workspace folder %q cannot be read: %w", shown, bare(err)).
			WithRemedy("Let this user read it.")
	case !info.IsDir():
		return extensions.Errorf(extensions.KindInvalid, "the workspace %q is not a folder", shown).
			WithRemedy("Give its folder.")
	}
	f, err := os.Open(dir)
	if err == nil {
		_, err = f.Readdirnames(1)
		_ = f.Close()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return extensions.Errorf(extensions.KindInvalid, "the workspace folder %q cannot be listed: %w", shown, bare(err)).
			WithRemedy("Let this user read it.")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "the workspace folder %q cannot be entered: %w", shown, bare(err))
	}
	defer root.Close()
	_, err = loadIgnore(root)
	return err
}

// expandHome expands a leading "~/", which Terraform does not.
func expandHome(p string) string {
	below, ok := strings.CutPrefix(p, "~/")
	if !ok && p != "~" {
		return p
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return p
	}
	if p == "~" {
		return home
	}
	return filepath.Join(home, below)
}

func isDrivePath(s string) bool {
	return runtime.GOOS == "windows" && filepath.VolumeName(s) != ""
}
