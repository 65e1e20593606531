package command

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// failed is extensions.Failed: what went wrong here has its kind already.
func failed(op string, id extensions.ID, err error) error {
	return extensions.Failed(op, id, err, nil)
}

// errUnknown is wrapped by what says that an answer cannot be understood.
var errUnknown = errors.New("the program's answer cannot be understood")

func unknown(format string, args ...any) error {
	return fmt.Errorf("%w: %w", errUnknown, fmt.Errorf(format, args...))
}

// mutates reports whether a run of the verb may leave something changed.
func mutates(verb string) bool {
	return slices.Contains([]string{verbProvision, verbTeardown, verbExtend, verbExec}, verb)
}

// lost is the error of a run whose outcome nobody knows. For what has no effect that is a program that is broken.
func lost(verb string, err error, said string) error {
	kind, remedy := extensions.KindInternal, "check the program with `sandboxer extension test`"
	if mutates(verb) {
		kind = extensions.KindIndeterminate
	}
	if said = extensions.LastLines(said, 300); said != "" {
		err = fmt.Errorf("%w; it said: %s", err, said)
	}
	return extensions.Errorf(kind, "%s: %w", verb, err).WithRemedy("%s", remedy)
}

// kinds are those that a program may answer a verb with. That nothing was found is no error of find.
var kinds = map[string][]extensions.Kind{
	verbProvision: {extensions.KindInvalid, extensions.KindConflict, extensions.KindIndeterminate, extensions.KindExhausted,
		extensions.KindUnsupported, extensions.KindFailed},
	verbStatus:   nil,
	verbFind:     {extensions.KindConflict},
	verbTeardown: {extensions.KindConflict, extensions.KindIndeterminate},
	verbExtend:   {extensions.KindNotFound, extensions.KindConflict, extensions.KindIndeterminate, extensions.KindUnsupported},
	verbUsage:    {extensions.KindNotFound, extensions.KindConflict},
	verbExec: {extensions.KindNotFound, extensions.KindConflict, extensions.KindIndeterminate, extensions.KindUnsupported,
		extensions.KindExhausted},
}

// always are the kinds that every verb may answer with.
var always = []extensions.Kind{extensions.KindUnauthorized, extensions.KindUnavailable, extensions.KindUnreachable}

// err is the failure in the contract's words.
func (r *refusal) err(verb string) error {
	if !slices.Contains(always, r.Kind) && !slices.Contains(kinds[verb], r.Kind) {
		return unknown("%q is not an error kind of %s", extensions.Clean(string(r.Kind), 40), verb)
	}
	if r.Message == "" {
		return unknown("a failure of the kind %s without a message", r.Kind)
	}
	if r.RetryAfter < 0 || r.RetryAfter > maxTimeout.Seconds() {
		return unknown("retry_after_seconds is %v", r.RetryAfter)
	}
	e := extensions.Errorf(r.Kind, "%s", extensions.Clean(r.Message, 400)).WithRemedy("%s", extensions.Clean(r.Remedy, 400))
	e.RetryAfter = time.Duration(r.RetryAfter * float64(time.Second))
	return e
}
