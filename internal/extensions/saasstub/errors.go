package saasstub

import (
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// maxWords bounds the vendor's text in a message, in runes.
const maxWords = 200

var kinds = map[vendor.Code]extensions.Kind{
	vendor.CodeUnauthorized: extensions.KindUnauthorized,
	vendor.CodeInvalid:      extensions.KindInvalid,
	vendor.CodeNotFound:     extensions.KindNotFound,
	vendor.CodeEnded:        extensions.KindNotFound,
	vendor.CodeConflict:     extensions.KindConflict,
	vendor.CodeNameTaken:    extensions.KindConflict,
	vendor.CodeQuota:        extensions.KindExhausted,
	vendor.CodeNoCapacity:   extensions.KindExhausted,
	vendor.CodeNotOffered:   extensions.KindUnsupported,
	vendor.CodeThrottled:    extensions.KindUnavailable,
	vendor.CodeUnavailable:  extensions.KindUnavailable,
	vendor.CodeNoRoute:      extensions.KindUnreachable,
	vendor.CodeAnswerLost:   extensions.KindIndeterminate,
}

var remedies = map[vendor.Code]string{
	vendor.CodeUnauthorized: "set the credential api_key of this extension, or SAAS_STUB_API_KEY",
	vendor.CodeQuota:        "destroy a sandbox of this account, or raise quota in the vendor's script",
	vendor.CodeNoCapacity:   "choose another region or another extension",
	vendor.CodeNotOffered:   "ask for what the account's plan includes, or choose another extension",
	vendor.CodeNoRoute:      "check the network and run it again",
}

func failed(op string, id extensions.ID, err error) error {
	if hasCode(err, vendor.CodePaused) {
		err = extensions.Paused(id)
	}
	return extensions.Failed(op, id, err, classify)
}

// classify maps the vendor's answers.
func classify(err error) *extensions.Error {
	var f *vendor.Fault
	if !errors.As(err, &f) {
		return nil
	}
	e := extensions.Errorf(kinds[f.Code], "the vendor answered: %s", extensions.Clean(f.Error(), maxWords)).WithRemedy("%s", remedies[f.Code])
	e.RetryAfter = f.RetryAfter
	return e
}

func hasCode(err error, code vendor.Code) bool {
	var f *vendor.Fault
	return errors.As(err, &f) && f.Code == code
}
