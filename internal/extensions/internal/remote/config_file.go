package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kevinburke/ssh_config"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	maxConfigFile   = 1 << 20
	maxIncludeDepth = 16 // ssh's own bound
	maxIncludes     = 256
)

// sshConfig collects what ssh_config says about one name: as in ssh, the first
// value of a keyword counts, and IdentityFile and CertificateFile add up. The
// library reads the lines; Include and Match are settled here, since its own
// looks for included files in another home, and takes the words after
// `Match host` for names.
type sshConfig struct {
	place
	name     string // as it was given
	user     string // an explicit user, which Match user sees
	values   map[string][]string
	ids      []string
	certs    []string
	includes int
}

// keywords with a value are kept; of all others ssh_config is full, and none
// changes where we connect, as whom, or whom we trust.
var keptKeywords = map[string]bool{
	"hostname": true, "port": true, "user": true, "identityagent": true, "identitiesonly": true, "proxyjump": true,
	"proxycommand": true, "userknownhostsfile": true, "globalknownhostsfile": true, "hostkeyalias": true,
	"connecttimeout": true, "addressfamily": true, "canonicalizehostname": true, "knownhostscommand": true,
	"revokedhostkeys": true,
}

// lookUp reads the user's file and then the system's, or only the one that the
// options name, which then has to be there.
func (p place) lookUp(name, user string) (*sshConfig, error) {
	c := &sshConfig{place: p, name: name, user: user, values: map[string][]string{}}
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
			WithRemedy("check the file, or say in the host's ssh block what it would")
	}
	text, matches := disarm(data)
	parsed, err := ssh_config.DecodeBytes(text)
	if err != nil {
		return c.wrong(path, 0, fmt.Errorf("%s", extensions.Clean(err.Error(), 200)))
	}
	for _, block := range parsed.Hosts {
		if err := c.block(block, matches, path, depth); err != nil {
			return err
		}
	}
	return nil
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

// includeKeyword and matchMark stand for what the library must not see; files
// with control characters are refused, so nobody else can write the mark.
const (
	includeKeyword = "SandboxerInclude"
	matchMark      = "\x01"
)

// disarm rewrites Include and Match lines, one for one, and returns what the
// Match lines ask for.
func disarm(data []byte) (text []byte, matches []string) {
	var out bytes.Buffer
	for line := range strings.Lines(string(data) + "\n") {
		trimmed := strings.TrimLeft(line, " \t")
		end := strings.IndexAny(trimmed, " \t=\r\n")
		switch strings.ToLower(trimmed[:max(end, 0)]) {
		case "include":
			line = includeKeyword + trimmed[end:]
		case "match":
			line = "Host * #" + matchMark + strconv.Itoa(len(matches)) + "\n"
			matches = append(matches, strings.TrimLeft(strings.TrimSpace(trimmed[end:]), "= \t"))
		}
		out.WriteString(line)
	}
	return out.Bytes(), matches
}

func (c *sshConfig) block(block *ssh_config.Host, matches []string, path string, depth int) error {
	if mark, ok := strings.CutPrefix(block.EOLComment, matchMark); ok {
		n, err := strconv.Atoi(mark)
		if err != nil || n >= len(matches) {
			return c.wrong(path, 0, errors.New("a Match line cannot be read"))
		}
		if ok, err := c.matches(matches[n]); err != nil || !ok {
			return c.wrong(path, 0, err)
		}
	} else if !c.isHost(block) {
		return nil
	}
	for _, node := range block.Nodes {
		kv, ok := node.(*ssh_config.KV)
		if !ok {
			continue
		}
		if err := c.keyword(kv, path, depth); err != nil {
			return c.wrong(path, kv.Pos().Line, err)
		}
	}
	return nil
}

// isHost matches the Host line. The library's own matching lets ? stand for
// nothing, and takes names that are separated by tabs for one.
func (c *sshConfig) isHost(block *ssh_config.Host) bool {
	var patterns []string
	for _, p := range block.Patterns {
		for _, field := range strings.Fields(p.String()) {
			patterns = append(patterns, strings.ReplaceAll(field, `"`, ""))
		}
	}
	return matchList(strings.Join(patterns, " "), c.name, " ")
}

func (c *sshConfig) keyword(kv *ssh_config.KV, path string, depth int) error {
	args, err := configArguments(kv)
	if err != nil {
		return err
	}
	key := strings.ToLower(kv.Key)
	switch {
	case key == strings.ToLower(includeKeyword):
		return c.include(args, path, depth)
	case len(args) == 0:
		if keptKeywords[key] || key == "identityfile" || key == "certificatefile" {
			return fmt.Errorf("%s has no value", kv.Key)
		}
	case key == "identityfile":
		c.ids = append(c.ids, args[0])
	case key == "certificatefile":
		c.certs = append(c.certs, args[0])
	case key == "proxyjump" || key == "proxycommand": // the first of the two counts
		if c.values["proxyjump"] == nil && c.values["proxycommand"] == nil {
			c.values[key] = args
		}
	case keptKeywords[key] && c.values[key] == nil:
		c.values[key] = args
	}
	return nil
}

func (c *sshConfig) include(args []string, from string, depth int) error {
	if depth >= maxIncludeDepth {
		return errors.New("files include each other too deeply")
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

// wrong says where in the configuration err is; an error that says it already
// and nil pass.
func (c *sshConfig) wrong(path string, line int, err error) error {
	var told *extensions.Error
	if err == nil || errors.As(err, &told) {
		return err
	}
	where := path
	if line > 0 {
		where += ":" + strconv.Itoa(line)
	}
	return extensions.Errorf(extensions.KindInvalid, "%s: %w", where, err).
		WithRemedy("change the file, or say in the host's ssh block what it would (address, port, user, identity, jump)")
}

// configArguments splits a line as ssh does: at blanks, quotes keep together,
// a # that begins a word ends the line.
func configArguments(kv *ssh_config.KV) ([]string, error) {
	rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(kv.String()), kv.Key))
	rest = strings.TrimSpace(strings.TrimPrefix(rest, "="))
	return splitWords(rest)
}

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
