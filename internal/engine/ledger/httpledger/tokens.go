package httpledger

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"gopkg.in/yaml.v3"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Token is what a server knows of a token: not the token.
type Token struct {
	ID        string    `yaml:"id"`
	Account   string    `yaml:"account"` // org/workspace, or an org
	SHA256    string    `yaml:"sha256"`  // lower-case hex, of the token's text
	CreatedAt time.Time `yaml:"created_at"`
	ExpiresAt time.Time `yaml:"expires_at,omitempty"` // zero = never
}

// tokenFile is the file of tokens: of its owner alone, although it lets nobody in.
type tokenFile struct {
	Version int     `yaml:"version"`
	Tokens  []Token `yaml:"tokens"`
}

const tokensVersion = 1

// Tokens are those of a file, which is read again whenever it has changed.
type Tokens struct {
	file string

	mu   sync.Mutex
	seen os.FileInfo
	list []Token
	err  error
}

// OpenTokens reads the file: KindInvalid where it is not one of tokens,
// KindUnavailable where it cannot be read.
func OpenTokens(file string) (*Tokens, error) {
	t := &Tokens{file: file}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	return t, t.err
}

// reload reads the file if it has changed. One that cannot be read lets nobody in.
func (t *Tokens) reload() {
	info, err := os.Stat(t.file)
	if err == nil && t.seen != nil && os.SameFile(info, t.seen) && info.ModTime().Equal(t.seen.ModTime()) && info.Size() == t.seen.Size() {
		return
	}
	t.seen = info
	t.list, t.err = readTokens(t.file)
}

// Authenticate finds whose a token is. It takes the same time for every token.
func (t *Tokens) Authenticate(token string) (Principal, bool) {
	sum := sha256.Sum256([]byte(token))
	hash := []byte(hex.EncodeToString(sum[:]))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reload()
	var who Principal
	found := 0
	for _, k := range t.list {
		if same := subtle.ConstantTimeCompare([]byte(k.SHA256), hash); same == 1 {
			who, found = Principal{Token: k.ID, Account: k.Account, Until: k.ExpiresAt}, 1
		}
	}
	return who, found == 1
}

func readTokens(file string) ([]Token, error) {
	info, err := os.Stat(file)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, oops(extensions.KindInvalid, "the tokens in %s can be read or written by others", file).WithRemedy("chmod 600 %s", file)
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, oops(extensions.KindUnavailable, "reading the tokens: %w", err).WithRemedy("make one with `sandboxer ledger token create ACCOUNT`, or name the file with --tokens")
	}
	var f tokenFile
	if err := strictyaml.Decode(file, b, &f); err != nil {
		return nil, err
	}
	if f.Version != tokensVersion {
		return nil, oops(extensions.KindInvalid, "%s is of version %d, not %d", file, f.Version, tokensVersion)
	}
	for i, k := range f.Tokens {
		if sum, err := hex.DecodeString(k.SHA256); err != nil || len(sum) != sha256.Size || k.SHA256 != strings.ToLower(k.SHA256) || k.ID == "" || k.Account == "" ||
			slices.ContainsFunc(f.Tokens[:i], func(o Token) bool { return o.ID == k.ID }) {
			return nil, oops(extensions.KindInvalid, "token %d in %s has no id of its own, no account or no SHA-256", i+1, file)
		}
		if err := ledger.CheckScope(k.Account); err != nil {
			return nil, oops(extensions.KindInvalid, "token %s in %s: %w", extensions.Clean(k.ID, 40), file, err).WithRemedy("write org/workspace, or an org for all of its")
		}
	}
	return f.Tokens, nil
}

// ListTokens tells the tokens of a file, the oldest first.
func ListTokens(file string) ([]Token, error) { return readTokens(file) }

// CreateToken makes a token for an account and adds it to the file, which is
// made where it is missing. It is good for a ttl, 0 = until it is revoked; below
// zero is KindInvalid. The token's text is told this once.
func CreateToken(file, account string, now time.Time, ttl time.Duration) (text string, t Token, err error) {
	if ttl < 0 {
		return "", t, oops(extensions.KindInvalid, "a token cannot be good for %s", ttl).WithRemedy("give a ttl above zero")
	}
	raw := make([]byte, sha256.Size)
	if _, err := rand.Read(raw); err != nil {
		return "", t, err
	}
	text = "sbxl_" + base64.RawURLEncoding.EncodeToString(raw)
	sum := sha256.Sum256([]byte(text))
	t = Token{ID: "tok-" + strings.ToLower(rand.Text()[:10]), Account: account, SHA256: hex.EncodeToString(sum[:]), CreatedAt: now.UTC().Truncate(time.Second)}
	if ttl > 0 {
		t.ExpiresAt = now.Add(ttl).UTC().Truncate(time.Second)
	}
	err = changeTokens(file, true, func(list []Token) ([]Token, error) { return append(list, t), nil })
	return text, t, err
}

// RevokeToken removes a token; servers refuse it from then on. An unknown one
// is KindNotFound.
func RevokeToken(file, id string) error {
	return changeTokens(file, false, func(list []Token) ([]Token, error) {
		rest := slices.DeleteFunc(slices.Clone(list), func(t Token) bool { return t.ID == id })
		if len(rest) == len(list) {
			return nil, oops(extensions.KindNotFound, "%s has no token %q", file, extensions.Clean(id, 40)).WithRemedy("list them with `sandboxer ledger token list`")
		}
		return rest, nil
	})
}

// changeTokens replaces the file as a whole, one process after the other.
func changeTokens(file string, makeIt bool, change func([]Token) ([]Token, error)) (err error) {
	if makeIt {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return oops(extensions.KindUnavailable, "making the folder of the tokens: %w", err)
		}
	}
	lock := flock.New(file+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return oops(extensions.KindUnavailable, "locking the tokens: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	list, err := readTokens(file)
	if errors.Is(err, fs.ErrNotExist) && makeIt {
		list, err = nil, nil
	}
	if err != nil {
		return err
	}
	if list, err = change(list); err != nil {
		return err
	}
	body, err := yaml.Marshal(tokenFile{tokensVersion, append([]Token{}, list...)})
	if err != nil {
		return oops(extensions.KindInternal, "%w", err)
	}
	if err := replaceFile(file, body); err != nil {
		return oops(extensions.KindUnavailable, "writing the tokens: %w", err)
	}
	return nil
}

func replaceFile(file string, body []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".tokens-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, ignore(os.Remove(f.Name())))
	}
	return nil
}

func ignore(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("removing what was begun: %w", err)
}
