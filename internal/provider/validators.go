package provider

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// stringRule validates one string: a check that returns "" or what is wrong, and a description for the
// documentation.
type stringRule struct {
	about string
	check func(string) string
	// secret reports a value that must not be shown: Terraform quotes the line a diagnostic is about.
	secret func(string) bool
}

func (r stringRule) Description(context.Context) string         { return r.about }
func (r stringRule) MarkdownDescription(context.Context) string { return r.about }

func (r stringRule) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if wrong := r.check(req.ConfigValue.ValueString()); wrong != "" {
		about, detail := "Invalid value for "+req.Path.String(), sentence(wrong)+"\n\nExpected: "+sentence(r.about)
		if r.secret != nil && r.secret(req.ConfigValue.ValueString()) {
			resp.Diagnostics.AddError(about, detail)
			return
		}
		resp.Diagnostics.AddAttributeError(req.Path, about, detail)
	}
}

func eachString(rules ...validator.String) validator.List {
	return listvalidator.ValueStringsAre(rules...)
}

func eachValue(rules ...validator.String) validator.Map {
	return mapvalidator.ValueStringsAre(rules...)
}

func eachNumber(rules ...validator.Number) validator.Map {
	return mapvalidator.ValueNumbersAre(rules...)
}

func eachKey(rules ...validator.String) validator.Map { return mapvalidator.KeysAre(rules...) }

// badRune names the first character not allowed in a value.
func badRune(s string, multiline bool) string {
	for i, r := range s {
		switch {
		case r == 0:
			return fmt.Sprintf("it contains a NUL byte at position %d", i)
		case r == '\n' || r == '\r' || r == '\t':
			if !multiline {
				return fmt.Sprintf("it contains a line break or tab at position %d", i)
			}
		case unicode.IsControl(r) || r == 0x2028 || r == 0x2029:
			return fmt.Sprintf("it contains the control character U+%04X at position %d", r, i)
		}
	}
	return ""
}

// plainText accepts one non-empty line without control characters.
func plainText(what string) stringRule {
	return stringRule{about: what + " on one line, without control characters", check: func(s string) string {
		if strings.TrimSpace(s) == "" {
			return "it is empty"
		}
		return badRune(s, false)
	}}
}

// text accepts any text a process can be given, with line breaks.
func text() stringRule {
	return stringRule{about: "text without NUL bytes and control characters", check: func(s string) string { return badRune(s, true) }}
}

// secretText accepts any value an environment variable can have.
func secretText() stringRule {
	return stringRule{about: "a value without NUL bytes", check: func(s string) string {
		if strings.ContainsRune(s, 0) {
			return "it contains a NUL byte, which no environment variable can hold"
		}
		return ""
	}}
}

// argument accepts any text a program can be given.
func argument() stringRule {
	return stringRule{about: "text without NUL bytes", check: func(s string) string {
		if strings.ContainsRune(s, 0) {
			return "it contains a NUL byte, which no program can be given"
		}
		return ""
	}}
}

// label accepts the name of a sandbox, snapshot or host.
func label(what string) stringRule {
	return stringRule{about: what + ": 1 to 63 letters, digits, '.', '_' and '-', with a letter or digit at both ends",
		check: func(s string) string {
			if wrong := badRune(s, false); wrong != "" {
				return wrong
			}
			return wrongIf(engine.CheckName(s))
		}}
}

const maxPrefix = 54 // leaves room for a random suffix within a name

func labelPrefix() stringRule {
	return stringRule{about: "the start of a name: at most 54 letters, digits, '.', '_' and '-', starting with a letter or digit",
		check: func(s string) string {
			if wrong := badRune(s, false); wrong != "" {
				return wrong
			}
			if len(s) > maxPrefix {
				return fmt.Sprintf("it has %d characters", len(s))
			}
			return wrongIf(engine.CheckName(strings.TrimRight(s, "-._")))
		}}
}

func accountName() stringRule {
	return stringRule{about: `an account as "org/workspace"`, check: func(s string) string {
		return wrongIf(engine.CheckAccount(s))
	}}
}

func wrongIf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var profilePattern = regexp.MustCompile(`^profile\.[a-z0-9][a-z0-9._-]*(@[0-9A-Za-z][0-9A-Za-z.+-]*)?$`)

func profileRef() stringRule {
	return stringRule{about: `a profile such as "profile.quickstart" or "profile.quickstart@1.0.0"`, check: func(s string) string {
		if profilePattern.MatchString(s) {
			return ""
		}
		if !strings.HasPrefix(s, "profile.") && profilePattern.MatchString("profile."+s) {
			return fmt.Sprintf("%q is not a profile ID; did you mean %q?", s, "profile."+s)
		}
		return fmt.Sprintf("%q is not a profile ID", s)
	}}
}

func duration() stringRule {
	return stringRule{about: `a positive duration such as "90s", "45m", "2h30m" or "1d"`, check: func(s string) string {
		_, err := parseDuration(s)
		return wrongIf(err)
	}}
}

func money() stringRule {
	return stringRule{about: `a decimal and a currency, such as "1.00 USD"`, check: func(s string) string {
		return wrongIf(engine.CheckMoney(s))
	}}
}

func envName() stringRule {
	return stringRule{about: "the name of an environment variable", check: func(s string) string {
		if !extensions.ValidEnvName(s) {
			return fmt.Sprintf("%q cannot name an environment variable", s)
		}
		return ""
	}}
}

func secretRef() stringRule {
	return stringRule{about: "a reference such as env://VARIABLE, file:///path or exec://program?arg=a", check: func(s string) string {
		return wrongIf(engine.CheckSecretRef(s))
	}, secret: func(s string) bool { return !strings.Contains(s, "://") }}
}

func sandboxID() stringRule {
	return stringRule{about: `a sandbox ID: "sbx-" and 20 characters`, check: func(s string) string {
		_, err := extensions.ParseID(s)
		return wrongIf(err)
	}}
}

func snapshotID() stringRule {
	return stringRule{about: `a snapshot ID: "snp-" and 20 characters`, check: func(s string) string {
		if !extensions.ValidSnapshotID(s) {
			return fmt.Sprintf("%q is not a snapshot ID", s)
		}
		return ""
	}}
}

// hostEntry accepts a host's ref or the name of a registered one.
func hostEntry() stringRule {
	return stringRule{about: "the ref of a sandboxer_host, or the name of a registered host", check: func(s string) string {
		if extensions.IsHostRef(s) {
			_, err := extensions.ParseHostRef(s)
			return wrongIf(err)
		}
		return wrongIf(engine.CheckName(s))
	}}
}

// oneOf accepts the given values; for others it suggests the nearest one.
func oneOf(values ...string) stringRule {
	return stringRule{about: "one of " + strings.Join(values, ", "), check: func(s string) string {
		if slices.Contains(values, s) {
			return ""
		}
		best, bestAt := "", 0.5
		for _, v := range values {
			if m := levenshtein.Match(s, v, nil); m >= bestAt {
				best, bestAt = v, m
			}
		}
		if best != "" {
			return fmt.Sprintf("%q is unknown; did you mean %q?", s, best)
		}
		return fmt.Sprintf("%q is unknown", s)
	}}
}

func ledgerURL() stringRule {
	return stringRule{about: "sqlite:///absolute/path/ledger.db or postgres://user@host/database", check: func(s string) string {
		if wrong := badRune(s, false); wrong != "" {
			return wrong
		}
		err := engine.CheckLedger(s)
		var x *extensions.Error
		if errors.As(err, &x) { // the path says what it is about
			return x.Err.Error() + ". " + sentence(extensions.RemedyOf(err))
		}
		return wrongIf(err)
	}, secret: func(s string) bool {
		return strings.Contains(s, "@") || strings.Contains(s, "password=") || strings.Contains(s, "token=")
	}}
}

// conflictsWith refuses two arguments that exclude each other.
func conflictsWith(other string) validator.String {
	return stringvalidator.ConflictsWith(path.MatchRoot(other))
}

var addressPattern = regexp.MustCompile(`^[A-Za-z0-9\[]([A-Za-z0-9._:%\[\]-]{0,253})$`)

// hostAddress accepts a name or address that no ssh program could mistake for an option.
func hostAddress() stringRule {
	return stringRule{about: "a host name or an IP address", check: func(s string) string {
		if wrong := badRune(s, false); wrong != "" {
			return wrong
		}
		if !addressPattern.MatchString(s) {
			return fmt.Sprintf("%q is not an address", s)
		}
		return ""
	}}
}

var userPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@-]{0,62}$`)

func userName() stringRule {
	return stringRule{about: "a user's name", check: func(s string) string {
		if !userPattern.MatchString(s) {
			return fmt.Sprintf("%q cannot be a user", s)
		}
		return ""
	}}
}
