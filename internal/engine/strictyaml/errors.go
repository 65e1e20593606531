package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Error is one mistake at one place. Line and Column count from 1. Both are 0 if the mistake concerns the
// whole file; Column is 0 if only the line is known.
type Error struct {
	File         string
	Line, Column int
	Msg          string
	Suggestion   string // nearest known word, or ""
}

// Error returns `file:line:column: msg (did you mean "x"?)`, leaving out what is unknown.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	if e.Column > 0 {
		fmt.Fprintf(&b, ":%d", e.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	if e.Suggestion != "" {
		fmt.Fprintf(&b, " (did you mean %q?)", e.Suggestion)
	}
	return b.String()
}

// As makes a lone Error an *extensions.Error of KindInvalid.
func (e *Error) As(target any) bool {
	t, ok := target.(**extensions.Error)
	if ok {
		*t = extensions.Errorf(extensions.KindInvalid, "%s", e.Error())
	}
	return ok
}

// Errors lists every mistake found, ordered by file and position.
type Errors []*Error

// Error returns one line per mistake.
func (l Errors) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes every mistake visible to errors.As.
func (l Errors) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

// Err returns the sorted mistakes without duplicates as one *extensions.Error of KindInvalid, or nil if
// there are none.
func (l Errors) Err() error {
	if len(l) == 0 {
		return nil
	}
	sorted := slices.Clone(l)
	slices.SortStableFunc(sorted, func(a, b *Error) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	sorted = slices.CompactFunc(sorted, func(a, b *Error) bool { return *a == *b })
	return &extensions.Error{Kind: extensions.KindInvalid, Err: sorted}
}

// Collect returns the mistakes that err holds. An error from elsewhere becomes one mistake in file without
// a position.
func Collect(file string, err error) Errors {
	if err == nil {
		return nil
	}
	var list Errors
	if errors.As(err, &list) {
		return list
	}
	var one *Error
	if errors.As(err, &one) {
		return Errors{one}
	}
	return Errors{{File: file, Msg: err.Error()}}
}

// Message returns an error's text for one line of a list, with its remedy, if any.
func Message(err error) string {
	if remedy := extensions.RemedyOf(err); remedy != "" {
		return err.Error() + "; " + remedy
	}
	return err.Error()
}
