package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// StateDirEnv names the environment variable that moves the state folder.
const StateDirEnv = "SANDBOXER_STATE_DIR"

// DefaultStateDir is the user's state folder: $SANDBOXER_STATE_DIR, else
// $XDG_STATE_HOME/sandboxer or ~/.local/state/sandboxer (XDG Base Directory
// Specification 0.8), on macOS ~/Library/Application Support/sandboxer, on
// Windows %LocalAppData%\sandboxer.
func DefaultStateDir() (string, error) {
	if dir := os.Getenv(StateDirEnv); dir != "" {
		return filepath.Abs(dir)
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		var dir string
		var err error
		if runtime.GOOS == "windows" {
			dir, err = os.UserCacheDir()
		} else {
			dir, err = os.UserConfigDir()
		}
		if err != nil {
			return "", noHome(err)
		}
		return filepath.Join(dir, "sandboxer"), nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sandboxer"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", noHome(err)
	}
	return filepath.Join(home, ".local", "state", "sandboxer"), nil
}

// stateDirOf returns an absolute state folder; "" = the user's.
func stateDirOf(dir string) (string, error) {
	if dir == "" {
		return DefaultStateDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", extensions.Errorf(extensions.KindInvalid, "state folder: %w", err)
	}
	return dir, nil
}

// TryStateDir makes, writes, syncs and removes a file in the state folder; before that exists, in the nearest
// folder above it. It returns the state folder. Errors are KindUnavailable, with a remedy.
func (e *Engine) TryStateDir() (dir string, err error) {
	if dir, err = stateDirOf(e.opts.StateDir); err != nil {
		return "", err
	}
	at := dir
	for {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	if err := tryFile(at); err != nil {
		return dir, extensions.Errorf(extensions.KindUnavailable, "the state folder %s cannot be used: %w", dir, err).
			WithRemedy("make %s a folder that you own, on a disk with room, or name another in %s or the provider's state_dir", at,
				StateDirEnv)
	}
	return dir, nil
}

func tryFile(dir string) error {
	f, err := os.CreateTemp(dir, ".sandboxer-doctor-")
	if err != nil {
		return err
	}
	_, err = f.WriteString("sandboxer doctor\n")
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
}

func noHome(err error) error {
	return extensions.Errorf(extensions.KindInvalid, "this user has no home folder to keep state in: %w", err).
		WithRemedy("set %s, or the provider's state_dir", StateDirEnv)
}
