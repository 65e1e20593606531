package place

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// identityOf returns a digest of who a credential is to its vendor; "" for places of the user's own, and without a credential.
// It is the same for all sandboxes of an account, so that it can be compared, and too short to tell a credential.
func identityOf(x extensions.Extension, d extensions.Descriptor, cfg extensions.Config) string {
	if !d.RunsAt(extensions.PlaceAccount) {
		return ""
	}
	who := ""
	if i, ok := x.(extensions.Identifier); ok {
		who = i.Identity(cfg)
	}
	if who == "" && len(cfg.Credentials) > 0 {
		values := map[string]string{}
		for name, s := range cfg.Credentials {
			values[name] = s.Reveal()
		}
		text, _ := json.Marshal(values) // texts, by name
		who = string(text)
	}
	if who == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte("sandboxer identity "+d.Handler+" "+cfg.Account))
	mac.Write([]byte(who))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// to returns the backend for what a credential of this identity made; "" = it is not known whose did.
func (o *opened) to(made string) *Backend {
	return &Backend{opened: o, stranger: made != "" && made != o.identity}
}

// Identity is that of the credential in use; see Address. "" = there is none.
func (b *Backend) Identity() string { return b.identity }

// unlessStranger returns err, an answer of the place, unless it says that something is absent which another identity made.
func (b *Backend) unlessStranger(op string, id extensions.ID, err error) error {
	if !b.stranger || !extensions.IsKind(err, extensions.KindNotFound) {
		return err
	}
	return extensions.Classify(op, b.Binding.ID, id, extensions.Errorf(extensions.KindUnreachable, "the credential does not find it, but "+
		"another one created it, perhaps that of another account: %w", extensions.ErrElsewhere).
		WithRemedy("use the credential that it was created with, or wait: a sandbox counts as ended five minutes after the deadline that its "+
			"place enforces; what has none, end at the vendor"))
}
