package workspace

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
)

// pipe runs git and lets read consume its stdout. It feeds the hashes of the blobs in ask to stdin. It
// ends when read does; an error of read kills git.
func (c *clone) pipe(outer context.Context, ask []object, read func(*bufio.Reader) error, args ...string) error {
	ctx, cancel := context.WithCancel(outer)
	defer cancel()
	cmd := gitCmd(ctx, c.loc, c.dir, append([]string{"--git-dir=" + c.gitDir()}, args...)...)
	stderr := &capped{limit: 8 << 10}
	cmd.Stderr = stderr
	cmd.Stdin = questions(ask)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return gitFailed(outer, c.loc, err, "")
	}
	readErr := read(bufio.NewReaderSize(out, 256<<10))
	if readErr != nil {
		cancel()
	}
	_, _ = io.Copy(io.Discard, out)
	waitErr := cmd.Wait()
	if waitErr != nil && (readErr == nil || errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF)) {
		return gitFailed(outer, c.loc, waitErr, stderr.String())
	}
	return cmp.Or(readErr, waitErr)
}

func questions(ask []object) io.Reader {
	i := 0
	return readerFunc(func(p []byte) (int, error) {
		for i < len(ask) && ask[i].kind != "blob" {
			i++
		}
		if i == len(ask) {
			return 0, io.EOF
		}
		i++
		return copy(p, ask[i-1].hash+"\n"), nil // p is io.Copy's buffer, larger than any hash
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// isDotGit reports whether a file system may treat name as ".git", considering case, trailing dots and
// spaces, ignorable characters and short names.
func isDotGit(name string) bool {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
	name, _, _ = strings.Cut(name, ":")
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1"
}
