package profile

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/meter"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Limits of one profile.
const (
	maxList         = 256       // entries of a list or map
	maxText         = 64 << 10  // bytes of one text
	maxInstructions = 256 << 10 // bytes of setup.instructions
)

// Words that profiles may use.
const (
	networkDeny  = "deny"
	networkAllow = "allow"

	ScopeSession = "session"
	ScopeAgent   = "agent"
	ScopeShared  = "shared"
)

var (
	scopes         = []string{ScopeSession, ScopeAgent, ScopeShared}
	workspaceModes = []string{extensions.WorkspaceMirror, extensions.WorkspaceRemoteCanonical}
	accesses       = []string{extensions.AccessNone, extensions.AccessRO, extensions.AccessRW}
	costClasses    = []string{"self-hosted", "saas-metered"}
)

// checker collects the mistakes of one file with their positions.
type checker struct {
	p        *Profile // nil if the file is no profile
	pos      *strictyaml.Positions
	errs     strictyaml.Errors
	at       [][]string // the paths of errs
	deferred [][]string // paths checked once their inputs have values; so is a list that contains one
}

func newChecker(p *Profile) *checker { return &checker{p: p, pos: p.pos} }

func (c *checker) fail(path []string, format string, args ...any) *strictyaml.Error {
	e := c.pos.Errorf(path, format, args...)
	if !slices.ContainsFunc(c.deferred, func(d []string) bool {
		return slices.Equal(d, path) || len(d) == len(path)+1 && slices.Equal(d[:len(path)], path) && isIndex(d[len(path)])
	}) {
		c.errs, c.at = append(c.errs, e), append(c.at, path)
	}
	return e
}

func isIndex(step string) bool {
	_, err := strconv.Atoi(step)
	return err == nil
}

// is records err, if any, at path.
func (c *checker) is(err error, path ...string) {
	if err != nil {
		c.fail(path, "%s", strictyaml.Message(err))
	}
}

func (c *checker) oneOf(value *string, what string, allowed []string, path ...string) {
	if value == nil || slices.Contains(allowed, *value) {
		return
	}
	e := c.fail(path, "%s is not %s: want %s", quoted(*value), what, strings.Join(allowed, ", "))
	e.Suggestion = strictyaml.Nearest(*value, allowed)
}

// eachOf is oneOf for a list that must not be empty if it is present.
func (c *checker) eachOf(values []string, what string, allowed []string, path ...string) {
	if values != nil && len(values) == 0 {
		c.fail(path, "the list is empty: want at least one of %s", strings.Join(allowed, ", "))
	}
	for i := range values {
		c.oneOf(&values[i], what, allowed, index(path, i)...)
	}
}

// each checks every entry of a list, and its length.
func (c *checker) each(list []string, check func(string) error, path ...string) {
	if len(list) > maxList {
		c.fail(path, "%d entries; at most %d are accepted", len(list), maxList)
		return
	}
	for i, s := range list {
		c.is(check(s), append(slices.Clone(path), strconv.Itoa(i))...)
	}
}

// pairs checks every entry of a map, and its size.
func (c *checker) pairs(m map[string]string, check func(k, v string) error, path ...string) {
	if len(m) > maxList {
		c.fail(path, "%d entries; at most %d are accepted", len(m), maxList)
		return
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		c.is(check(k, m[k]), append(slices.Clone(path), k)...)
	}
}

// text checks an optional text.
func (c *checker) text(s *string, check func(string) error, path ...string) {
	if s != nil {
		c.is(check(*s), path...)
	}
}

func id(prefix string) func(string) error {
	return func(s string) error { return CheckID(prefix, s) }
}

// line accepts one non-empty line of text.
func line(what string) func(string) error {
	return func(s string) error {
		switch {
		case s == "":
			return invalid("%s is empty", what)
		case len(s) > maxText:
			return invalid("%s has %d bytes; at most %d are accepted", what, len(s), maxText)
		case strings.ContainsFunc(s, isControl):
			return invalid("%s %s has a line break or another control character", what, quoted(s))
		}
		return nil
	}
}

// script accepts multi-line text for a shell or a program's argument.
func script(what string) func(string) error {
	return func(s string) error {
		if len(s) > maxText {
			return invalid("%s has %d bytes; at most %d are accepted", what, len(s), maxText)
		}
		return checkValue(what, s)
	}
}

func checkValue(what, s string) error {
	if i := strings.IndexFunc(s, func(r rune) bool { return isControl(r) && r != '\n' && r != '\t' && r != '\r' }); i >= 0 {
		r := []rune(s[i:])[0]
		if r == 0 {
			return invalid("%s contains a NUL character", what)
		}
		return invalid("%s contains the control character %U", what, r)
	}
	return nil
}

func checkEnv(name, value string) error {
	if err := CheckEnvName(name); err != nil {
		return err
	}
	return script("the value of " + name)(value)
}

// CheckRef checks what names a profile: its ID, perhaps with "@" and a version. Errors are KindInvalid.
func CheckRef(ref string) error { return reference(ProfilePrefix)(ref) }

// reference accepts an id, perhaps with "@" and a version.
func reference(prefix string) func(string) error {
	return func(s string) error {
		id, version, pinned := strings.Cut(s, "@")
		if err := CheckID(prefix, id); err != nil {
			return err
		}
		if pinned {
			return checkVersion(version)
		}
		return nil
	}
}

func checkMoney(s string) error {
	_, err := meter.ParseMoney(s)
	return err
}

func checkPositive(what string, n *int64, most int64) error {
	if n != nil && (*n < 1 || *n > most) {
		return invalid("%s: %d is not between 1 and %d; null means no limit", what, *n, most)
	}
	return nil
}

func checkSpan(what string, d *Duration, least time.Duration) error {
	switch {
	case d == nil:
		return nil
	case *d <= 0:
		return invalid("%s %s must be positive", what, FormatDuration(duration(d)))
	case duration(d) < least:
		return invalid("%s %s is below %s", what, FormatDuration(duration(d)), FormatDuration(least))
	case duration(d) > MaxTTL:
		return invalid("%s %s is above %s", what, FormatDuration(duration(d)), FormatDuration(MaxTTL))
	}
	return nil
}
