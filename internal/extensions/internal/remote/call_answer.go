package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

var (
	errStray  = fmt.Errorf("the script prints more than %d MiB besides its answer", maxStray>>20)
	errAnswer = errors.New("the answer is too long")
)

// answerReader extracts the answer from a script's stdout.
type answerReader struct {
	begin, end []byte
	limit      int64
	stray      int64
	inside     bool
	answers    int
	doc        bytes.Buffer
	partial    []byte // possible start of a mark
}

func newAnswerReader(mark string, limit int64) *answerReader {
	// The first answer's newline is the script's own, so a mark need not start a line: it is random enough.
	return &answerReader{begin: []byte(mark + " answer\n"), end: []byte("\n" + mark + " end\n"), limit: limit}
}

func (a *answerReader) write(p []byte) error {
	buf := p
	if len(a.partial) > 0 {
		buf = append(a.partial, p...)
		a.partial = nil
	}
	for {
		mark := a.begin
		if a.inside {
			mark = a.end
		}
		i := bytes.Index(buf, mark)
		if i < 0 {
			keep := min(len(buf), len(mark)-1)
			if err := a.take(buf[:len(buf)-keep]); err != nil {
				return err
			}
			a.partial = append([]byte(nil), buf[len(buf)-keep:]...)
			return nil
		}
		if err := a.take(buf[:i]); err != nil {
			return err
		}
		if a.inside {
			a.answers++
		} else {
			a.doc.Reset()
		}
		a.inside = !a.inside
		buf = buf[i+len(mark):]
	}
}

// take keeps a piece of the answer, or counts what is outside it.
func (a *answerReader) take(p []byte) error {
	if !a.inside {
		if a.stray += int64(len(p)); a.stray > maxStray {
			return errStray
		}
		return nil
	}
	if int64(a.doc.Len()+len(p)) > a.limit {
		return fmt.Errorf("%w: more than %d bytes", errAnswer, a.limit)
	}
	a.doc.Write(p)
	return nil
}

// maxLine bounds a progress line, in bytes.
const maxLine = 4 << 10

// stderrReader separates progress lines from the rest and keeps the end of the rest.
type stderrReader struct {
	mark     []byte
	progress func(string)
	line     []byte
	cut      bool // the line is longer than the part kept
	count    int64
	rest     tail
}

func newStderrReader(mark string, progress func(string)) *stderrReader {
	return &stderrReader{mark: []byte(mark + " "), progress: progress}
}

func (s *stderrReader) write(p []byte) error {
	if s.count += int64(len(p)); s.count > maxStray {
		return errStray
	}
	for len(p) > 0 {
		piece, rest, whole := bytes.Cut(p, []byte("\n"))
		p = rest
		room := max(0, maxLine-len(s.line))
		s.cut = s.cut || len(piece) > room
		s.line = append(s.line, piece[:min(room, len(piece))]...)
		if whole {
			s.flush()
		}
	}
	return nil
}

func (s *stderrReader) flush() {
	// A program's unfinished line may precede the mark.
	if before, text, ok := bytes.Cut(s.line, s.mark); ok {
		s.rest.write(before)
		if s.progress != nil {
			s.progress(extensions.Clean(strings.ToValidUTF8(string(text), "\ufffd"), maxLine))
		}
	} else {
		s.rest.write(append(s.line, '\n'))
	}
	s.line, s.cut = s.line[:0], false
}

// text returns the end of what was not progress, fit for a message.
func (s *stderrReader) text() string {
	return extensions.LastLines(strings.TrimSpace(s.rest.text()+string(s.line)), 1000)
}

// scriptError is the answer of fail.
type scriptError struct {
	Kind    extensions.Kind `json:"kind"`
	Message string          `json:"message"`
	Remedy  string          `json:"remedy"`
}

// decode reads what the script answered.
func (c *Client) decode(exit int, out *answerReader, errs *stderrReader, into any) error {
	name := c.host.name
	said := func() string {
		if text := errs.text(); text != "" {
			return "; it said: " + text
		}
		return ""
	}
	if out.answers != 1 || out.inside {
		return started(extensions.KindInternal, "a script on %s ended with exit code %d and %d answers instead of one%s", name, exit, out.answers,
			said())
	}
	doc := out.doc.Bytes()
	failure, err := decodeFailure(doc)
	switch {
	case err != nil:
		return started(extensions.KindInternal, "a script on %s gave an unexpected answer: %w%s", name, err, said())
	case failure != nil:
		return failure
	case exit != 0:
		return started(extensions.KindInternal, "a script on %s answered, but ended with exit code %d%s", name, exit, said())
	case into == nil:
		return nil
	}
	if err := strict(doc, into); err != nil {
		return started(extensions.KindInternal, "a script on %s gave an unexpected answer: %w", name, err)
	}
	return nil
}

// decodeFailure returns the error that doc holds, or nil if it holds none.
func decodeFailure(doc []byte) (failure, err error) {
	if !bytes.HasPrefix(bytes.TrimLeft(doc, " \t\r\n"), []byte("{")) {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := strict(doc, &fields); err != nil {
		return nil, err
	}
	raw, is := fields["error"]
	if !is || len(fields) != 1 {
		return nil, nil
	}
	var e scriptError
	if err := strict(raw, &e); err != nil {
		return nil, err
	}
	kind, message := e.Kind, extensions.Clean(e.Message, 4000)
	if !kinds[kind] {
		kind, message = extensions.KindInternal, fmt.Sprintf("%s (of the unknown kind %q)", message, extensions.Clean(string(e.Kind), 40))
	}
	f := started(kind, "%s", message)
	f.Remedy = extensions.Clean(e.Remedy, 2000)
	return f, nil
}

// kinds are the kinds that a script may answer with.
var kinds = map[extensions.Kind]bool{
	extensions.KindInvalid: true, extensions.KindUnauthorized: true, extensions.KindNotFound: true, extensions.KindConflict: true,
	extensions.KindIndeterminate: true, extensions.KindExhausted: true, extensions.KindUnavailable: true, extensions.KindUnreachable: true,
	extensions.KindTimeout: true, extensions.KindUnsupported: true, extensions.KindInternal: true, extensions.KindInterrupted: true,
	extensions.KindFailed: true,
}

// strict decodes exactly one document without unknown fields. A decoder's message may quote the document.
func strict(doc []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one document")
		}
	}
	if err != nil {
		return errors.New(extensions.Clean(err.Error(), 300))
	}
	return nil
}
