package workspace

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// location is a parsed repo: either a folder or a git URL.
type location struct {
	folder string // as given, with "~/" expanded

	url      string // without credentials; passed to git
	host     string // scheme://host[:port], for the credential's scope
	user     string // https only; for ssh it is part of url
	password string
}

const maxRepoBytes = 4096

var allowedSchemes = []string{"https", "ssh", "file"}

// scpForm is [user@]host:path, with no slash before the colon.
var scpForm = regexp.MustCompile(`^(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]):([^:].*)$`)

// parse is pure except for "~/". It never quotes a URL that it cannot parse, since the faulty part may be
// a password.
func parse(repo, ref string) (location, error) {
	if strings.ContainsFunc(repo, unicode.IsControl) || len(repo) > maxRepoBytes {
		return location{}, bad("repo contains a control character or is longer than %d bytes", maxRepoBytes)
	}
	if strings.HasPrefix(repo, "-") || repo == "" {
		return location{}, bad("repo is empty or starts with a dash")
	}
	if err := checkRef(ref); err != nil {
		return location{}, err
	}
	if scheme, _, ok := strings.Cut(repo, "://"); ok && !strings.ContainsAny(scheme, `/\`) {
		return parseURL(scheme, repo)
	}
	colon, slash := strings.IndexByte(repo, ':'), strings.IndexByte(repo, '/')
	if colon < 0 || slash >= 0 && slash < colon || isDrivePath(repo) {
		return location{folder: expandHome(repo)}, nil
	}
	m := scpForm.FindStringSubmatch(repo)
	if m == nil || strings.HasPrefix(m[1], "-") {
		return location{}, bad("repo is neither a folder nor a supported git URL")
	}
	return location{url: repo}, nil
}

func parseURL(scheme, repo string) (location, error) {
	if !slices.Contains(allowedSchemes, scheme) {
		return location{}, bad("git over %q is not allowed", extensions.Clean(scheme, 40))
	}
	u, err := url.Parse(repo)
	if err != nil || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return location{}, bad("the %s:// URL of the repository is malformed, or has a query or fragment", scheme)
	}
	switch {
	case u.Path == "" || u.Path == "/":
		return location{}, bad("the %s:// URL has no repository", scheme)
	case scheme == "file" && (u.Host != "" || u.User != nil):
		return location{}, bad("a file:// URL has an absolute path and no host: file:///path")
	case scheme != "file" && (u.Hostname() == "" || strings.HasPrefix(u.Host, "-")):
		return location{}, bad("the %s:// URL has no host", scheme)
	case strings.HasPrefix(u.User.Username(), "-"):
		return location{}, bad("the user in the %s:// URL starts with a dash", scheme)
	}
	loc := location{host: scheme + "://" + u.Host}
	password, hasPassword := u.User.Password()
	switch {
	case scheme == "ssh" && hasPassword:
		return location{}, bad("an ssh:// URL takes no password")
	case scheme == "https":
		loc.user, loc.password = u.User.Username(), password
		u.User = nil
	}
	loc.url = u.String()
	return loc, nil
}

// origin names the location for people.
func (l location) origin() string {
	if l.folder != "" {
		return extensions.Clean(l.folder, 300)
	}
	return extensions.Clean(l.url, 300)
}

// redact removes the credential from git's output.
func (l location) redact(text string) string {
	for _, secret := range []string{l.password, l.user} {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			if len(form) > 2 {
				text = strings.ReplaceAll(text, form, extensions.Redacted)
			}
		}
	}
	return text
}

var fullCommit = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
var shortCommit = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// checkRef applies git's rules for names, and refuses revision expressions.
func checkRef(ref string) error {
	if ref == "" {
		return nil
	}
	why := ""
	switch {
	case len(ref) > 250:
		why = "is longer than 250 bytes"
	case strings.HasPrefix(ref, "-"):
		why = "starts with a dash"
	case strings.ContainsFunc(ref, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		why = "contains a space or control character"
	case strings.ContainsAny(ref, "~^:?*[\\") || strings.Contains(ref, "..") || strings.Contains(ref, "@{") || ref == "@":
		why = "is an expression, not a name"
	case strings.HasPrefix(ref, "/") || strings.HasSuffix(ref, "/") || strings.Contains(ref, "//") || strings.HasSuffix(ref, "."):
		why = "is not a valid git name"
	}
	for part := range strings.SplitSeq(ref, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			why = "is not a valid git name"
		}
	}
	if why == "" {
		return nil
	}
	return extensions.Errorf(extensions.KindInvalid, "the ref %q %s", extensions.Clean(ref, 100), why).
		WithRemedy("Give a branch, a tag or a commit.")
}

func bad(format string, args ...any) error {
	return extensions.Errorf(extensions.KindInvalid, format, args...).
		WithRemedy("Give a local folder, or a git repository as https://host/path, ssh://user@host/path, user@host:path or file:///path.")
}
