package secretref

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// MaxValueBytes is the maximum length of a value in bytes.
const MaxValueBytes = 64 << 10

// DefaultTimeout limits one program if Options.Timeout is zero.
const DefaultTimeout = 30 * time.Second

// Options are the environment of a resolution; zero fields mean this process's own.
type Options struct {
	LookupEnv func(name string) (string, bool) // nil = os.LookupEnv
	Home      string                           // replaces ~; "" = os.UserHomeDir
	Timeout   time.Duration                    // per program; 0 = DefaultTimeout
	// Warn receives advice about what works but is unwise; the text holds no value. May be nil.
	Warn func(text string)
}

// Resolve returns the value behind ref. KindInvalid: ref is malformed, or no environment variable can hold
// the value. KindUnauthorized: there is no value (unset, missing, empty, program failed). KindTimeout: the
// program took too long; it was killed with all that it started.
func Resolve(ctx context.Context, ref string, opts Options) (extensions.Secret, error) {
	r, err := parse(ref)
	if err != nil {
		return extensions.Secret{}, err
	}
	if err := ctx.Err(); err != nil {
		return extensions.Secret{}, err
	}
	var value []byte
	switch r.scheme {
	case "env":
		value, err = fromEnv(r, opts)
	case "file":
		value, err = fromFile(r, opts)
	case "exec":
		value, err = fromProgram(ctx, r, opts)
	}
	if err != nil {
		return extensions.Secret{}, err
	}
	return check(r, value)
}

func check(r reference, value []byte) (extensions.Secret, error) {
	switch {
	case len(value) == 0:
		return extensions.Secret{}, missing(r, "it is empty")
	case len(value) > MaxValueBytes:
		return extensions.Secret{}, unfit(r, "its value is longer than 64 KiB")
	case bytes.IndexByte(value, 0) >= 0:
		return extensions.Secret{}, unfit(r, "its value contains a NUL byte, which no environment variable can hold")
	}
	return extensions.NewSecret(string(value)), nil
}

func fromEnv(r reference, opts Options) ([]byte, error) {
	lookup := opts.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	value, ok := lookup(r.target)
	if !ok {
		return nil, missing(r, "the variable is not set on this machine")
	}
	return []byte(value), nil
}

func fromFile(r reference, opts Options) ([]byte, error) {
	name, err := atHome(r, opts)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, missing(r, reason(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, missing(r, reason(err))
	case !info.Mode().IsRegular():
		return nil, unfit(r, "it is not a regular file")
	}
	if err := guard(r, info, opts); err != nil {
		return nil, err
	}
	value, err := io.ReadAll(io.LimitReader(f, MaxValueBytes+3)) // room for the line break
	if err != nil {
		return nil, missing(r, reason(err))
	}
	return trim(value), nil
}

// guard refuses a file that others may write, since they could choose the secret. It only warns about one
// that others may read: container platforms mount files like that.
func guard(r reference, info fs.FileInfo, opts Options) error {
	if runtime.GOOS == "windows" { // mode bits say nothing there
		return nil
	}
	if info.Mode().Perm()&0o002 != 0 {
		return extensions.Errorf(extensions.KindUnauthorized, "the secret %s is not used: every user of this machine can change its file", r).
			WithRemedy("Remove the write permission of others: chmod o-w.")
	}
	if info.Mode().Perm()&0o004 != 0 && opts.Warn != nil {
		opts.Warn("the secret " + r.String() + " is readable by every user of this machine")
	}
	return nil
}

func atHome(r reference, opts Options) (string, error) {
	below, ok := strings.CutPrefix(r.target, "~/")
	if !ok {
		return r.target, nil
	}
	home := opts.Home
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", missing(r, "the home folder is unknown")
		}
	}
	return filepath.Join(home, below), nil
}

// trim removes one trailing line break, as editors and programs leave it.
func trim(b []byte) []byte {
	if cut, ok := bytes.CutSuffix(b, []byte("\n")); ok {
		return bytes.TrimSuffix(cut, []byte("\r"))
	}
	return b
}

func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission to read it is denied"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

func missing(r reference, why string) error {
	return extensions.Errorf(extensions.KindUnauthorized, "the secret %s cannot be read: %s", r, why).
		WithRemedy("Provide it on this machine, or change the reference.")
}

func unfit(r reference, why string) error {
	return extensions.Errorf(extensions.KindInvalid, "the secret %s cannot be used: %s", r, why).
		WithRemedy("Point the reference at a short text value.")
}
