package httpledger

import (
	"cmp"
	"os"
	"regexp"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Where a client finds its token: the text itself, or a file that holds it and
// nothing else.
const (
	EnvToken     = "SANDBOXER_LEDGER_TOKEN"
	EnvTokenFile = "SANDBOXER_LEDGER_TOKEN_FILE"
)

// credential is the client's token: given, or read from the environment.
func credential(given extensions.Secret) (extensions.Secret, error) {
	none := extensions.Secret{}
	text := cmp.Or(given.Reveal(), os.Getenv(EnvToken))
	if file := os.Getenv(EnvTokenFile); text == "" && file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return none, oops(extensions.KindUnauthorized, "the ledger token cannot be read: %w", err).WithRemedy("check the file that %s names", EnvTokenFile)
		}
		text = string(b)
	}
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return none, oops(extensions.KindUnauthorized, "there is no token for the ledger").
			WithRemedy("have one made with `sandboxer ledger token create ACCOUNT` where the ledger is served, and set %s or %s", EnvToken, EnvTokenFile)
	case !tokenForm.MatchString(text):
		return none, oops(extensions.KindUnauthorized, "the ledger token is not one of `sandboxer ledger token create`").
			WithRemedy("set %s to the whole line it printed", EnvToken)
	}
	return extensions.NewSecret(text), nil
}

// tokenForm: a mark to be found by, 256 bits in base64.
var tokenForm = regexp.MustCompile(`^sbxl_[A-Za-z0-9_-]{43}$`)
