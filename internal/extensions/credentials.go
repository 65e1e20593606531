package extensions

import (
	"fmt"
	"slices"
	"strings"
)

// CredentialField names one secret and the environment variable its vendor uses.
type CredentialField struct {
	Name     string
	Env      string // "" = none
	Required bool   // not for a field of CredentialsAnyOf
	Doc      string
}

// Pick returns the credentials that open a place, from given, which the user set, and
// usual, which the vendor's environment variables hold. It takes one whole set of
// CredentialsAnyOf: the first that is complete and contains every given field of any
// set, so that identities never mix. ways lists the missing fields, once for each way
// to complete them; nil if none is missing.
func (d Descriptor) Pick(given, usual map[string]Secret) (use map[string]Secret, ways [][]CredentialField) {
	use = map[string]Secret{}
	var required []CredentialField
	for _, f := range d.Credentials {
		if s := either(given, usual, f.Name); !d.inSet(f.Name) && !s.IsZero() {
			use[f.Name] = s
		} else if f.Required {
			required = append(required, f)
		}
	}
	for _, set := range d.CredentialsAnyOf {
		if !d.covers(set, given) {
			continue
		}
		var lacks []CredentialField
		for _, f := range d.fields(set) {
			if either(given, usual, f.Name).IsZero() {
				lacks = append(lacks, f)
			}
		}
		if len(lacks) > 0 {
			ways = append(ways, append(slices.Clone(required), lacks...))
			continue
		}
		for _, name := range set {
			use[name] = either(given, usual, name)
		}
		if len(required) > 0 {
			return use, [][]CredentialField{required}
		}
		return use, nil
	}
	switch {
	case len(ways) == 0 && len(d.CredentialsAnyOf) > 0: // the user mixed them
		for _, set := range d.CredentialsAnyOf {
			ways = append(ways, d.fields(set))
		}
	case len(ways) == 0 && len(required) > 0:
		ways = [][]CredentialField{required}
	}
	return use, ways
}

func either(given, usual map[string]Secret, name string) Secret {
	if s := given[name]; !s.IsZero() {
		return s
	}
	return usual[name]
}

func (d Descriptor) inSet(name string) bool {
	return slices.ContainsFunc(d.CredentialsAnyOf, func(set []string) bool { return slices.Contains(set, name) })
}

// covers reports whether set has every field of a set that is given.
func (d Descriptor) covers(set []string, given map[string]Secret) bool {
	return !slices.ContainsFunc(d.Credentials, func(f CredentialField) bool {
		return !given[f.Name].IsZero() && d.inSet(f.Name) && !slices.Contains(set, f.Name)
	})
}

// fields returns the declared fields of a set, in its order.
func (d Descriptor) fields(set []string) []CredentialField {
	var out []CredentialField
	for _, name := range set {
		if i := slices.IndexFunc(d.Credentials, func(f CredentialField) bool { return f.Name == name }); i >= 0 {
			out = append(out, d.Credentials[i])
		}
	}
	return out
}

// Alternatives says, for people, which credentials are required: "oidc_token, or token
// with team_id and project_id"; "" without CredentialsAnyOf.
func (d Descriptor) Alternatives() string {
	var out []string
	for _, set := range d.CredentialsAnyOf {
		out = append(out, Together(set))
	}
	return strings.Join(out, ", or ")
}

// Together joins the names of one set: "token with team_id and project_id".
func Together(names []string) string {
	switch n := len(names); n {
	case 0, 1:
		return strings.Join(names, "")
	case 2:
		return names[0] + " with " + names[1]
	default:
		return names[0] + " with " + strings.Join(names[1:n-1], ", ") + " and " + names[n-1]
	}
}

// checkCredentials is the part of Validate about credentials.
func (d Descriptor) checkCredentials() error {
	seen := map[string]bool{}
	for _, f := range d.Credentials {
		if seen[f.Name] {
			return fmt.Errorf("the credential %q is declared twice", f.Name)
		}
		seen[f.Name] = true
		if f.Required && d.inSet(f.Name) {
			return fmt.Errorf("the credential %q is required, and so no alternative", f.Name)
		}
	}
	if len(d.CredentialsAnyOf) == 1 {
		return fmt.Errorf("one set of credentials is no alternative: make its fields required")
	}
	for i, set := range d.CredentialsAnyOf {
		for j, name := range set {
			if !seen[name] || slices.Contains(set[:j], name) {
				return fmt.Errorf("an alternative names the credential %q, which is not declared, or twice", name)
			}
		}
		for k, other := range d.CredentialsAnyOf {
			if k != i && !slices.ContainsFunc(set, func(name string) bool { return !slices.Contains(other, name) }) {
				return fmt.Errorf("an alternative of credentials is empty, or a part of another")
			}
		}
	}
	return nil
}
