package ledger

import (
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const namePattern = `[A-Za-z0-9][A-Za-z0-9._-]{0,62}`

var (
	accountForm = regexp.MustCompile(`^` + namePattern + `/` + namePattern + `$`)
	orgForm     = regexp.MustCompile(`^` + namePattern + `$`)
)

// CheckAccount checks the form "org/workspace": two names of letters, digits,
// '.', '_' and '-', each of at most 63. Errors are KindInvalid.
func CheckAccount(account string) error {
	if accountForm.MatchString(account) {
		return nil
	}
	return failuref(extensions.KindInvalid, "the account %q is not of the form org/workspace", extensions.Clean(account, 80)).
		WithRemedy("use letters, digits, '.', '_' and '-', such as acme/web")
}

// CheckScope is CheckAccount that also takes an org alone, for all of its.
func CheckScope(account string) error {
	if orgForm.MatchString(account) {
		return nil
	}
	return CheckAccount(account)
}

// ScopeOf says which accounts one that CheckScope takes stands for.
func ScopeOf(account string) string {
	if StreamOf(account) == account {
		return "a workspace of " + account + " (" + account + "/…)"
	}
	return account
}
