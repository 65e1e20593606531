package ledger

import (
	"regexp"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const namePattern = `[A-Za-z0-9][A-Za-z0-9._-]{0,62}`

var accountForm = regexp.MustCompile(`^` + namePattern + `/` + namePattern + `$`)

// CheckAccount returns KindInvalid unless account has the form "org/workspace": two names of at most 63
// letters, digits, '.', '_' and '-' each.
func CheckAccount(account string) error {
	if accountForm.MatchString(account) {
		return nil
	}
	return fault.Errorf(extensions.KindInvalid, "the account %q is not of the form org/workspace", extensions.Clean(account, 80)).
		WithRemedy("use letters, digits, '.', '_' and '-', such as acme/web")
}

// StreamOf returns the chain that holds an account's events: the org, which is the part before "/".
func StreamOf(account string) string {
	return bank.OrgOf(account)
}
