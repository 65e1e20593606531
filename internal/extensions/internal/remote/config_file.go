package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	maxConfigFile   = 1 << 20
	maxIncludeDepth = 16 // ssh's own bound
	maxIncludes     = 256
)

// sshConfig collects what ssh_config says about one name. As in ssh, a keyword's first value counts, but
// IdentityFile and CertificateFile add up.
type sshConfig struct {
	userEnv
	name     string // as given
	user     string // an explicit user, which Match user sees
	values   map[string][]string
	ids      []string
	certs    []string
	includes int
}

// keptKeywords are the keywords whose values are kept. ssh_config is full of others, and none changes where
// we connect, as whom, or whom we trust.
var keptKeywords = map[string]bool{
	"hostname": true, "port": true, "user": true, "identityagent": true, "identitiesonly": true, "proxyjump": true,
	"proxycommand": true, "userknownhostsfile": true, "globalknownhostsfile": true, "hostkeyalias": true,
	"connecttimeout": true, "addressfamily": true, "canonicalizehostname": true, "knownhostscommand": true,
	"revokedhostkeys": true,
}

// lookUp reads the user's file and then the system's, or only the one that the options name, which must then
// exist.
func (p userEnv) lookUp(name, user string) (*sshConfig, error) {
	c := &sshConfig{userEnv: p, name: name, user: user, values: map[string][]string{}}
	if file := p.options.ConfigFile; file != "" {
		return c, c.file(p.path(file), 0, true)
	}
	if err := c.file(p.ssh("config"), 0, false); err != nil {
		return nil, err
	}
	return c, c.file(systemConfig, 0, false)
}

func (c *sshConfig) file(path string, depth int, needed bool) error {
	data, err := readConfig(path)
	if err != nil {
		if !needed && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return extensions.Errorf(extensions.KindInvalid, "the SSH configuration cannot be read: %w", err).
			WithRemedy("check the file, or set its values in the host's ssh block")
	}
	applies, number := true, 0 // lines before the first Host or Match apply to every host
	for line := range strings.Lines(string(data)) {
		number++
		if applies, err = c.line(line, applies, path, depth); err != nil {
			return c.wrong(path, number, err)
		}
	}
	return nil
}

// line reads one line, and reports whether the next ones apply to the host.
func (c *sshConfig) line(line string, applies bool, path string, depth int) (bool, error) {
	line = strings.Trim(line, " \t\r\n\f")
	key := line
	if end := strings.IndexAny(line, " \t="); end >= 0 {
		key = line[:end]
	}
	rest := strings.TrimLeft(line[len(key):], " \t")
	rest = strings.TrimPrefix(rest, "=")
	keyword := strings.ToLower(key)
	switch {
	case key == "" || key[0] == '#':
		return applies, nil
	case keyword != "host" && keyword != "match" && !applies: // what is refused for one host does not concern another
		return false, nil
	case strings.ContainsFunc(keyword, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }):
		return false, fmt.Errorf("%q is not a keyword", extensions.Clean(key, 60)) // a byte order mark hides the Host behind it
	}
	args, err := splitWords(rest)
	switch {
	case err != nil:
		return false, err
	case keyword == "match":
		return c.matches(args)
	case len(args) == 0:
		if keyword == "host" || keyword == "identityfile" || keyword == "certificatefile" || keptKeywords[keyword] {
			return false, fmt.Errorf("%s has no value", key)
		}
	case keyword == "host":
		return matchList(strings.Join(args, " "), c.name, " "), nil
	case keyword == "include":
		return true, c.include(args, path, depth)
	case keyword == "identityfile":
		c.ids = append(c.ids, args[0])
	case keyword == "certificatefile":
		c.certs = append(c.certs, args[0])
	case keyword == "proxyjump" || keyword == "proxycommand": // the first of the two counts
		if c.values["proxyjump"] == nil && c.values["proxycommand"] == nil {
			c.values[keyword] = args
		}
	case keptKeywords[keyword] && c.values[keyword] == nil:
		c.values[keyword] = args
	}
	return true, nil
}

func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxConfigFile:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxConfigFile)
	}
	data, err := os.ReadFile(path)
	if err == nil && bytes.ContainsAny(data, "\x00\x01") {
		return nil, fmt.Errorf("%s is not text", path)
	}
	return data, err
}

func (c *sshConfig) include(args []string, from string, depth int) error {
	if depth >= maxIncludeDepth {
		return errors.New("files include each other too deep")
	}
	for _, arg := range args {
		pattern := c.path(arg)
		if !filepath.IsAbs(pattern) {
			if strings.HasPrefix(from, filepath.Dir(systemConfig)+"/") {
				pattern = filepath.Join(filepath.Dir(systemConfig), pattern)
			} else {
				pattern = c.ssh(pattern)
			}
		}
		files, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("include %s: %w", arg, err)
		}
		for _, file := range files {
			if c.includes++; c.includes > maxIncludes {
				return fmt.Errorf("more than %d files are included", maxIncludes)
			}
			if err := c.file(file, depth+1, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrong adds where in the configuration err is, unless err already says it.
func (c *sshConfig) wrong(path string, line int, err error) error {
	var told *extensions.Error
	if errors.As(err, &told) {
		return err
	}
	return extensions.Errorf(extensions.KindInvalid, "%s:%d: %w", path, line, err).
		WithRemedy("change the file, or set its values in the host's ssh block (address, port, user, identity, jump)")
}

// splitWords splits as ssh does: at blanks, with quotes keeping words together; a # at the start of a word
// ends the line.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case b == '\\' && i+1 < len(text) && strings.IndexByte(`\"' `, text[i+1]) >= 0:
			i++
			word.WriteByte(text[i])
			inWord = true
		case quote != 0 && b == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(b)
		case b == '"' || b == '\'':
			quote, inWord = b, true
		case b == ' ' || b == '\t':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		case b == '#' && !inWord:
			return words, nil
		default:
			word.WriteByte(b)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
