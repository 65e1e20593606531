package mcpserver

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type execInput struct {
	ID      string            `json:"id" jsonschema:"id of the sandbox"`
	Command []string          `json:"command,omitempty" jsonschema:"program and arguments, passed literally; or use shell"`
	Shell   string            `json:"shell,omitempty" jsonschema:"a script for /bin/sh"`
	Stdin   string            `json:"stdin,omitempty"`
	Dir     string            `json:"dir,omitempty" jsonschema:"folder inside; default: the workspace"`
	Env     map[string]string `json:"env,omitempty"`
	Timeout float64           `json:"timeout_seconds,omitempty" jsonschema:"kill the command after this many seconds; default: 300"`
}

type execOutput struct {
	ExitCode  int    `json:"exit_code"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Encoding  string `json:"encoding" jsonschema:"utf-8, or base64 of both streams if one is not text"`
	Truncated bool   `json:"truncated" jsonschema:"output was cut off; write it to a file and read the file in parts"`
}

func (s *Server) exec(ctx context.Context, in execInput, _ func(engine.Notice)) (execOutput, error) {
	m, err := s.find(in.ID)
	if err != nil {
		return execOutput{}, err
	}
	req := engine.ExecRequest{Command: in.Command, Shell: in.Shell, Dir: in.Dir, Env: in.Env,
		Timeout: time.Duration(in.Timeout * float64(time.Second))}
	if in.Stdin != "" {
		req.Stdin = strings.NewReader(in.Stdin)
	}
	if err := req.Check(); err != nil {
		return execOutput{}, err
	}
	res, err := s.engine.Exec(ctx, m.Receipt, req)
	if err != nil {
		return execOutput{}, err
	}
	stdout, moreOut := s.cut(res.Stdout)
	stderr, moreErr := s.cut(res.Stderr)
	out := execOutput{ExitCode: res.ExitCode, Encoding: encodingText,
		Truncated: moreOut || moreErr || res.StdoutTruncated || res.StderrTruncated}
	if !utf8.Valid(stdout) || !utf8.Valid(stderr) {
		out.Encoding = encodingBase64
	}
	out.Stdout, out.Stderr = encode(stdout, out.Encoding), encode(stderr, out.Encoding)
	return out, nil
}

const (
	encodingText   = "utf-8"
	encodingBase64 = "base64"
)

func encode(b []byte, encoding string) string {
	if encoding == encodingBase64 {
		return base64.StdEncoding.EncodeToString(b)
	}
	return string(b)
}

// cut keeps the beginning, without half a letter at its end.
func (s *Server) cut(b []byte) (kept []byte, more bool) {
	if len(b) <= s.limits.Output {
		return b, false
	}
	kept = b[:s.limits.Output]
	for i := 1; i < utf8.UTFMax; i++ {
		if r := kept[len(kept)-i]; utf8.RuneStart(r) {
			if !utf8.FullRune(kept[len(kept)-i:]) {
				kept = kept[:len(kept)-i]
			}
			break
		}
	}
	return kept, true
}

type readInput struct {
	ID     string `json:"id" jsonschema:"id of the sandbox"`
	Path   string `json:"path" jsonschema:"absolute, or relative to the workspace"`
	Offset int64  `json:"offset,omitempty" jsonschema:"first byte to read"`
}

type readOutput struct {
	Content  string `json:"content"`
	Encoding string `json:"encoding" jsonschema:"utf-8 or base64"`
	Size     int64  `json:"size_bytes" jsonschema:"size of the whole file"`
	Next     int64  `json:"next_offset,omitempty" jsonschema:"where to continue reading; absent at the end"`
}

// errEnough ends a download whose rest is not needed.
var errEnough = errors.New("enough")

func (s *Server) read(ctx context.Context, in readInput, _ func(engine.Notice)) (readOutput, error) {
	m, err := s.find(in.ID)
	if err != nil {
		return readOutput{}, err
	}
	if in.Path == "" || in.Offset < 0 {
		return readOutput{}, extensions.Errorf(extensions.KindInvalid, "cannot read %q from byte %d: want a path and an offset of at least 0",
			extensions.Clean(in.Path, 200), in.Offset)
	}
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := s.engine.Download(ctx, m.Receipt, in.Path, w)
		_ = w.CloseWithError(err)
		ended <- err
	}()
	out, err := s.part(tar.NewReader(r), in)
	_ = r.CloseWithError(errEnough)
	if failed := <-ended; err != nil && failed != nil && !errors.Is(failed, errEnough) {
		err = failed
	}
	return out, err
}

// part reads one part of the file that a stream begins with.
func (s *Server) part(stream *tar.Reader, in readInput) (readOutput, error) {
	head, err := stream.Next()
	if err != nil && !errors.Is(err, io.EOF) {
		return readOutput{}, err
	}
	if err != nil || head.Typeflag != tar.TypeReg || path.Clean(head.Name) != path.Base(in.Path) { // a folder's, or an empty one
		return readOutput{}, extensions.Errorf(extensions.KindInvalid, "%s is not a regular file", extensions.Clean(in.Path, 200)).
			WithRemedy("inspect it with sandbox_exec")
	}
	if _, err := io.CopyN(io.Discard, stream, min(in.Offset, head.Size)); err != nil {
		return readOutput{}, err
	}
	content, err := io.ReadAll(io.LimitReader(stream, int64(s.limits.Output)+1))
	if err != nil {
		return readOutput{}, err
	}
	content, more := s.cut(content)
	out := readOutput{Encoding: encodingText, Size: head.Size}
	if more {
		out.Next = in.Offset + int64(len(content))
	}
	if !utf8.Valid(content) {
		out.Encoding = encodingBase64
	}
	out.Content = encode(content, out.Encoding)
	return out, nil
}

type writeInput struct {
	ID       string `json:"id" jsonschema:"id of the sandbox"`
	Path     string `json:"path" jsonschema:"absolute, or relative to the workspace"`
	Content  string `json:"content"`
	Encoding string `json:"encoding,omitempty" jsonschema:"utf-8 (default) or base64"`
	Run      bool   `json:"executable,omitempty"`
}

type writeOutput struct {
	Size int64 `json:"size_bytes"`
}

func (s *Server) write(ctx context.Context, in writeInput, _ func(engine.Notice)) (writeOutput, error) {
	m, err := s.find(in.ID)
	if err != nil {
		return writeOutput{}, err
	}
	content := []byte(in.Content)
	switch in.Encoding {
	case "", encodingText:
	case encodingBase64:
		if content, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return writeOutput{}, extensions.Errorf(extensions.KindInvalid, "content is not base64: %w", err)
		}
	default:
		return writeOutput{}, extensions.Errorf(extensions.KindInvalid, "unknown encoding %q: want utf-8 or base64",
			extensions.Clean(in.Encoding, 50))
	}
	dir, name := path.Split(in.Path)
	if name == "" || name == "." || name == ".." {
		return writeOutput{}, extensions.Errorf(extensions.KindInvalid, "%q does not name a file", extensions.Clean(in.Path, 200))
	}
	mode := int64(0o644)
	if in.Run {
		mode = 0o755
	}
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	err = t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))})
	if err == nil {
		_, err = t.Write(content)
	}
	if err = errors.Join(err, t.Close()); err != nil {
		return writeOutput{}, err
	}
	if dir == "" {
		dir = "."
	}
	return writeOutput{Size: int64(len(content))}, s.engine.Upload(ctx, m.Receipt, dir, &b)
}
