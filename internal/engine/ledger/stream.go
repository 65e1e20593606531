package ledger

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/bank"

// StreamOf returns the chain that holds an account's events: the org, which is the part before "/".
func StreamOf(account string) string {
	return bank.OrgOf(account)
}
