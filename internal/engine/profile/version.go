package profile

import (
	"cmp"
	"strconv"
	"strings"
)

// version is a semantic version without build metadata.
type version struct {
	core [3]uint64
	pre  []string // pre-release identifiers
}

func parseVersion(s string) (version, error) {
	bad := func() (version, error) {
		return version{}, invalid(`%s is not a version: want three numbers as in "1.0.0"`, quoted(s))
	}
	if len(s) > 64 {
		return bad()
	}
	core, pre, hasPre := strings.Cut(s, "-")
	parts := strings.Split(core, ".")
	if len(parts) != 3 {
		return bad()
	}
	var v version
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil || !plainNumber(part) {
			return bad()
		}
		v.core[i] = n
	}
	if !hasPre {
		return v, nil
	}
	v.pre = strings.Split(pre, ".")
	for _, id := range v.pre {
		digits := strings.Trim(id, "0123456789") == ""
		if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r != '-' && !word(string(r), "") }) || digits && !plainNumber(id) {
			return bad()
		}
	}
	return v, nil
}

// plainNumber refuses signs and leading zeros, which would make two spellings
// of one version.
func plainNumber(s string) bool { return s == "0" || s != "" && s[0] >= '1' && s[0] <= '9' }

// compare orders by the precedence rules of semver.org, section 11.
func (v version) compare(w version) int {
	for i := range v.core {
		if c := cmp.Compare(v.core[i], w.core[i]); c != 0 {
			return c
		}
	}
	switch {
	case v.pre == nil || w.pre == nil:
		return cmp.Compare(boolInt(v.pre == nil), boolInt(w.pre == nil))
	}
	for i := range min(len(v.pre), len(w.pre)) {
		if c := compareIdentifier(v.pre[i], w.pre[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(v.pre), len(w.pre))
}

func compareIdentifier(a, b string) int {
	an, aErr := strconv.ParseUint(a, 10, 64)
	bn, bErr := strconv.ParseUint(b, 10, 64)
	switch {
	case aErr == nil && bErr == nil:
		return cmp.Compare(an, bn)
	case aErr == nil:
		return -1
	case bErr == nil:
		return 1
	}
	return strings.Compare(a, b)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
