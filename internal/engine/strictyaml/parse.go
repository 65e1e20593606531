package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
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
	root, bad := readDocument(data)
	if bad != nil {
		bad.File = file
	}
	return root, bad
}

// checkText refuses bytes that a text file cannot hold, with their position.
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

// readDocument returns the document's root value.
func readDocument(data []byte) (root *yaml.Node, bad *Error) {
	defer func() {
		if p := recover(); p != nil { // the parser panics on some malformed comments
			root, bad = nil, &Error{Msg: fmt.Sprintf("malformed: %v", p)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, &Error{Line: 1, Column: 1, Msg: "the file is empty"}
	} else if err != nil {
		return nil, syntaxError(err)
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
		return doc.Content[0], nil
	case err != nil:
		return nil, syntaxError(err)
	}
	return nil, &Error{Line: second.Line, Column: second.Column, Msg: "a second document starts here; a file holds one"}
}

var parserLine = regexp.MustCompile(`^line (\d+): `)

// syntaxError returns the parser's message and line. For some mistakes the parser counts lines from 0, and
// then names no first line; for unknown aliases it never names one.
func syntaxError(err error) *Error {
	e := &Error{Line: 1, Msg: strings.TrimPrefix(err.Error(), "yaml: ")}
	if strings.HasPrefix(e.Msg, "unknown anchor ") {
		e.Line = 0
		return e
	}
	if m := parserLine.FindStringSubmatch(e.Msg); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Msg = e.Msg[len(m[0]):] + ", here or on the next line"
	}
	return e
}
