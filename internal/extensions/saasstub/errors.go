package saasstub

import (
	"context"
	"errors"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

// maxWords bounds what of the vendor's words enters a message, in runes.
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
	vendor.CodeThrottled:    extensions.KindUnavailable,
	vendor.CodeUnavailable:  extensions.KindUnavailable,
	vendor.CodeNoRoute:      extensions.KindUnreachable,
	vendor.CodeAnswerLost:   extensions.KindIndeterminate,
}

var remedies = map[vendor.Code]string{
	vendor.CodeUnauthorized: "set the credential api_key of this extension, or SAAS_STUB_API_KEY",
	vendor.CodeQuota:        "destroy a sandbox of this account, or raise quota in the vendor's script",
	vendor.CodeNoCapacity:   "choose another region or another extension",
	vendor.CodeNoRoute:      "check the network and run it again",
}

// failure classifies err once; what is classified already only gains the
// operation and the id.
func (b *backend) failure(op string, id extensions.ID, err error) error {
	if err == nil {
		return nil
	}
	if _, bad := extensions.ParseID(string(id)); bad != nil {
		id = "" // what is no id must not be printed as one
	}
	e := &extensions.Error{Op: op, Extension: b.extension, ID: id}
	var known *extensions.Error
	var f *vendor.Fault
	switch {
	case errors.As(err, &known):
		copied := *known
		e = &copied
		e.Op, e.Extension = op, b.extension
		if e.ID == "" {
			e.ID = id
		}
	case errors.As(err, &f):
		e.Kind, e.RetryAfter, e.Remedy = kinds[f.Code], f.RetryAfter, remedies[f.Code]
		e.Err = errors.New("the vendor answers: " + extensions.Clean(f.Error(), maxWords))
	case errors.Is(err, context.DeadlineExceeded):
		e.Kind, e.Err = extensions.KindTimeout, err
	case errors.Is(err, context.Canceled):
		e.Kind, e.Err = extensions.KindIndeterminate, err
	default:
		e.Kind, e.Err = extensions.KindInternal, err
	}
	return e
}

func hasCode(err error, code vendor.Code) bool {
	var f *vendor.Fault
	return errors.As(err, &f) && f.Code == code
}
