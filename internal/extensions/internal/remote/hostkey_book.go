package remote

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the format of hashed known_hosts names
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// hostRules say how a host's key is known.
type hostRules struct {
	host   string // lower case; a certificate must name it
	port   int    // 0: the name is a HostKeyAlias, which has no port
	pinned string // host_key: a public key
	ca     string // host_ca: a public key
	files  []string
	// strict says that an argument named the file, so it must exist.
	strict bool
}

// name returns the host as known_hosts writes it.
func (r hostRules) name() string {
	if r.port == 0 || r.port == 22 {
		return r.host
	}
	return "[" + r.host + "]:" + strconv.Itoa(r.port)
}

// hostBook is what the rules know about one host. It keeps only the format of the library's knownhosts
// package. That package accepts a plain key equal to an authority's as the host's, applies @revoked to all
// hosts, and rejects a whole file for one line with an unknown key type.
type hostBook struct {
	rules   hostRules
	keys    []entry // plain keys of this host
	cas     []entry // authorities for this host
	revoked []entry // keys this host must neither have nor be signed by
	others  []entry // plain keys of the same name at port 22, which ssh would accept for any port
	tried   []string
	entries int // of any host
}

type entry struct {
	KnownLine
	key ssh.PublicKey
}

const (
	markerCA      = "@cert-authority"
	markerRevoked = "@revoked"
	maxKnownLine  = 1 << 20
)

// open reads the rules' files. Arguments that are not keys are KindInvalid.
func (r hostRules) open() (*hostBook, error) {
	b := &hostBook{rules: r}
	if r.pinned != "" {
		if err := b.argument("host_key", r.pinned, &b.keys); err != nil {
			return nil, err
		}
	}
	if r.ca != "" {
		if err := b.argument("host_ca", r.ca, &b.cas); err != nil {
			return nil, err
		}
	}
	for _, file := range r.files {
		if err := b.readFile(file); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *hostBook) argument(name, text string, into *[]entry) error {
	key, err := keyOf(text)
	if err != nil {
		return extensions.Errorf(extensions.KindInvalid, "%s of %s is not a public key: %w", name, b.rules.name(), err).
			WithRemedy("write it as ssh-keyscan prints it: `ssh-ed25519 AAAA…`").At("ssh." + name)
	}
	b.entries++
	*into = append(*into, entry{key: key, KnownLine: KnownLine{Argument: name, Fingerprint: fingerprint(key), Type: key.Type()}})
	return nil
}

// keyOf reads a public key as `type base64 comment`. It skips names before the key, as known_hosts and
// ssh-keyscan write them.
func keyOf(text string) (ssh.PublicKey, error) {
	fields := strings.Fields(text)
	for i := range fields {
		if i+1 == len(fields) || i > 2 {
			break
		}
		blob, err := base64.StdEncoding.DecodeString(fields[i+1])
		if err != nil || len(blob) == 0 {
			continue
		}
		key, err := ssh.ParsePublicKey(blob)
		if err != nil || key.Type() != fields[i] {
			continue
		}
		if _, isCert := key.(*ssh.Certificate); isCert {
			return nil, errors.New("it is a certificate; set the host's key, or the CA's as host_ca")
		}
		return key, nil
	}
	return nil, errors.New("it has no key")
}

func (b *hostBook) readFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && !b.rules.strict {
			b.tried = append(b.tried, path+" (absent)")
			return nil
		}
		return extensions.Errorf(extensions.KindInvalid, "the known_hosts file cannot be read: %w", err).
			WithRemedy("check the path, or write the file with `ssh-keyscan` after comparing the fingerprints").At("ssh.known_hosts")
	}
	defer f.Close()
	b.tried = append(b.tried, path)
	return b.read(f, path)
}

func (b *hostBook) read(r io.Reader, path string) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxKnownLine)
	number := 0
	for lines.Scan() {
		number++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if err := b.line(string(line), path, number); err != nil {
			return extensions.Errorf(extensions.KindInvalid, "%s:%d: %w", path, number, err).
				WithRemedy("correct the line: ignoring it would lose its trust")
		}
	}
	if err := lines.Err(); err != nil {
		return extensions.Errorf(extensions.KindInvalid, "the known_hosts file %s cannot be read: %w", path, err)
	}
	return nil
}

// line reads an entry. As in ssh, it skips a plain line it does not understand; one with a marker is an
// error, since losing it could mean trust.
func (b *hostBook) line(text, path string, number int) error {
	fields := strings.Fields(text)
	marker := ""
	if strings.HasPrefix(fields[0], "@") {
		marker, fields = fields[0], fields[1:]
		if marker != markerCA && marker != markerRevoked {
			return fmt.Errorf("the marker %s is unknown", extensions.Clean(marker, 40))
		}
	}
	key, err := entryKey(fields)
	if err != nil {
		if marker == "" {
			return nil
		}
		return err
	}
	if key == nil {
		return nil
	}
	b.entries++
	e := entry{key: key, KnownLine: KnownLine{File: path, Number: number, Fingerprint: fingerprint(key), Type: key.Type()}}
	named, loosely := matchHosts(fields[0], b.rules.name()), matchHosts(fields[0], b.rules.host)
	switch {
	case marker == markerRevoked && (named || loosely):
		b.revoked = append(b.revoked, e)
	case marker == markerCA && (named || loosely): // a certificate names hosts, not ports
		b.cas = append(b.cas, e)
	case marker == "" && named:
		b.keys = append(b.keys, e)
	case marker == "" && loosely:
		b.others = append(b.others, e)
	}
	return nil
}

// entryKey reads "names type base64"; nil is a key of a type we cannot use, which no host can show us either.
func entryKey(fields []string) (ssh.PublicKey, error) {
	if len(fields) < 3 {
		return nil, errors.New("the line has no key")
	}
	blob, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil {
		return nil, errors.New("the key is not base64")
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, nil
	}
	if key.Type() != fields[1] {
		return nil, fmt.Errorf("the key is of type %s, not %s", key.Type(), extensions.Clean(fields[1], 40))
	}
	return key, nil
}

// matchHosts matches a name with the first field of a line: a hash, or patterns of which no negated one may
// match.
func matchHosts(field, name string) bool {
	if hash, ok := strings.CutPrefix(field, "|1|"); ok {
		return matchHash(hash, name)
	}
	return matchList(strings.ToLower(field), name, ",")
}

func matchHash(field, name string) bool {
	salt64, sum64, ok := strings.Cut(field, "|")
	if !ok {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(salt64)
	if err != nil {
		return false
	}
	sum, err := base64.StdEncoding.DecodeString(sum64)
	if err != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(name))
	return hmac.Equal(mac.Sum(nil), sum)
}

// matchList matches a name with patterns; a matching one negated by ! decides.
func matchList(list, name, separators string) bool {
	found := false
	for _, pattern := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		negated := strings.HasPrefix(pattern, "!")
		if matchPattern(strings.TrimPrefix(pattern, "!"), name) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// matchPattern matches with * for any text and ? for any character. It takes at most len(pattern) × len(name)
// steps.
func matchPattern(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0: // let the last star take one more
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
