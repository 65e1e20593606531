package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// parse reads data as exactly one YAML document and returns its root value.
func parse(file string, data []byte) (*yaml.Node, *Error) {
	if len(data) > MaxBytes {
		return nil, &Error{File: file, Msg: fmt.Sprintf("the file has %d bytes; at most %d are read", len(data), MaxBytes)}
	}
	if err := checkText(file, data); err != nil {
		return nil, err
	}
	root, line, column, err := readDocument(bytes.NewReader(data))
	if err == nil {
		return root, nil
	}
	if line == 0 {
		line, column = locate(data)
	}
	return nil, &Error{File: file, Line: line, Column: column, Msg: syntaxMessage(err, line)}
}

// checkText refuses bytes that cannot stand in a text file, with their place.
func checkText(file string, data []byte) *Error {
	line, column := 1, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		column++
		switch {
		case r == utf8.RuneError && size == 1:
			return &Error{File: file, Line: line, Column: column, Msg: fmt.Sprintf("byte 0x%02x is not UTF-8", data[i])}
		case unprintable(r) && r != '\r', r == 0x2028, r == 0x2029:
			return &Error{File: file, Line: line, Column: column, Msg: fmt.Sprintf("control character %U", r)}
		case r == '\n', r == '\r' && !(i+1 < len(data) && data[i+1] == '\n'):
			line, column = line+1, 0
		}
		i += size
	}
	return nil
}

func unprintable(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

var errSecondDocument = errors.New("a second document starts here; a file holds one")

// readDocument returns the document's root value. A position comes with those
// errors whose place the parser tells.
func readDocument(r io.Reader) (root *yaml.Node, line, column int, err error) {
	defer func() {
		if p := recover(); p != nil { // the parser is known to panic on some malformed comments
			root, err = nil, fmt.Errorf("malformed: %v", p)
		}
	}()
	dec := yaml.NewDecoder(r)
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, 1, 1, errors.New("the file says nothing")
	} else if err != nil {
		return nil, 0, 0, err
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], 0, 0, nil
	case err != nil:
		return nil, 0, 0, err
	}
	return nil, second.Line, second.Column, errSecondDocument
}

// locate finds where the parser stops in malformed data by feeding it byte by
// byte. It has then read what it blames and a little more; taking off two
// characters gives the line, and the column to within a word.
func locate(data []byte) (line, column int) {
	r := &stepReader{data: data}
	_, _, _, _ = readDocument(r)
	taken := bytes.TrimRight(data[:r.next], "\r\n")
	start := bytes.LastIndexByte(taken, '\n') + 1
	line = 1 + bytes.Count(taken, []byte("\n"))
	if r.ended {
		return line, max(1, utf8.RuneCount(taken[start:]))
	}
	column = utf8.RuneCount(taken[start:max(start, min(len(taken), r.next-2))])
	if column <= 2 {
		column = 1
	}
	return line, column
}

type stepReader struct {
	data []byte
	next int
	// ended: the parser asked for more than there is, so the mistake is in
	// what is missing.
	ended bool
}

func (r *stepReader) Read(p []byte) (int, error) {
	if r.next == len(r.data) {
		r.ended = true
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	p[0] = r.data[r.next]
	r.next++
	return 1, nil
}

var parserLine = regexp.MustCompile(`^line (\d+): `)

// syntaxMessage strips the parser's own prefix. Where it blames an earlier
// line (the start of what was never closed), that line is kept.
func syntaxMessage(err error, line int) string {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	m := parserLine.FindStringSubmatch(msg)
	if m == nil {
		return msg
	}
	msg = msg[len(m[0]):]
	if m[1] != fmt.Sprint(line) {
		msg += ", in what begins near line " + m[1]
	}
	return msg
}
