package profile

import (
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// checkVersion accepts a semantic version with all three numbers, each below 2^32, and without build
// metadata, so that each version has one spelling.
func checkVersion(s string) error {
	core, _, _ := strings.Cut(s, "-")
	ok := len(s) <= 64 && semver.Canonical("v"+s) == "v"+s
	for _, number := range strings.Split(core, ".") {
		_, err := strconv.ParseUint(number, 10, 32)
		ok = ok && err == nil
	}
	if !ok {
		return invalid(`%s is not a version: want three numbers as in "1.0.0"`, quoted(s))
	}
	return nil
}

// higher orders releases before pre-releases, and higher versions first. A reference without a version
// thus never picks a pre-release while a release exists.
func higher(a, b string) int {
	a, b = "v"+a, "v"+b
	if preA, preB := semver.Prerelease(a) != "", semver.Prerelease(b) != ""; preA != preB {
		if preB {
			return -1
		}
		return 1
	}
	return semver.Compare(b, a)
}
