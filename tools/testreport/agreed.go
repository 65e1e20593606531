package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// agreed lists skips that are allowed even where skips are forbidden: one regular expression per line over "package
// test", and after " # " the reason. Empty lines and lines that start with # are ignored.
type agreed []*regexp.Regexp

func readAgreed(path string) (agreed, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out agreed
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, why, ok := strings.Cut(line, " # ")
		if !ok || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s:%d: no reason after \" # \"", path, n)
		}
		re, err := regexp.Compile("^(?:" + strings.TrimSpace(pattern) + ")$")
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		out = append(out, re)
	}
	return out, lines.Err()
}

func (a agreed) has(k key) bool {
	for _, re := range a {
		if re.MatchString(k.pkg + " " + k.test) {
			return true
		}
	}
	return false
}
