package extensions

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
)

// MaxHostRef bounds a host ref in bytes.
const MaxHostRef = 16 << 10

const (
	hostScheme  = "host://"
	hostVersion = "v=1&d="
)

// hostName is wider than what a host may be called: it keeps a ref on one line
// and its parts apart.
var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Ref returns the host in one line, "host://NAME?v=1&d=…", where d is the base64url
// of the JSON of everything but the name. Equal hosts have equal refs, and only the
// arguments determine it, so a plan can know it.
func (h Host) Ref() string {
	name := h.Name
	h.Name = ""
	b, err := json.Marshal(h)
	if err != nil { // no field of Host can fail to marshal
		return ""
	}
	return hostScheme + name + "?" + hostVersion + base64.RawURLEncoding.EncodeToString(b)
}

// IsHostRef reports whether a text is a ref and not a host's name. ParseHostRef
// validates it.
func IsHostRef(s string) bool { return strings.HasPrefix(s, hostScheme) }

// ParseHostRef reads exactly the refs that Ref writes: the returned host has this ref.
// Anything else is KindInvalid, such as an unknown field, another order or version, or
// more than MaxHostRef bytes.
func ParseHostRef(ref string) (Host, error) {
	refuse := func(why string) (Host, error) {
		return Host{}, Errorf(KindInvalid, "this is not a host ref: %s", why).WithRemedy("use the ref attribute of a sandboxer_host unchanged")
	}
	if len(ref) > MaxHostRef {
		return refuse("it is too long")
	}
	rest, scheme := strings.CutPrefix(ref, hostScheme)
	name, query, _ := strings.Cut(rest, "?")
	if !scheme || !hostName.MatchString(name) {
		return refuse("it does not start with " + hostScheme + " and a name")
	}
	text, ok := strings.CutPrefix(query, hostVersion)
	if !ok {
		return refuse("it has another version")
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return refuse("its content is damaged")
	}
	var h Host
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return refuse(Clean(err.Error(), 200))
	}
	if h.Name != "" {
		return refuse("it has two names")
	}
	if h.Name = name; h.Ref() != ref {
		return refuse("it is not written as sandboxer writes it")
	}
	return h, nil
}
