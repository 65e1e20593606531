package command

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Teardown implements extensions.Backend.
func (b *backend) Teardown(ctx context.Context, h extensions.Handle) (extensions.CleanupReport, error) {
	r, err := b.teardown(ctx, h)
	return r, failed("teardown", h.ID, err)
}

func (b *backend) teardown(ctx context.Context, h extensions.Handle) (r extensions.CleanupReport, err error) {
	if b.desc.Find.Recoverable() {
		h, _, err = b.whole(ctx, h)
	} else { // the program looks for the id
		_, err = parseHandle(h)
	}
	switch {
	case extensions.IsKind(err, extensions.KindNotFound):
		return extensions.CleanupReport{AlreadyGone: true}, nil
	case err != nil:
		return r, err
	}
	a, err := b.call(ctx, request{Verb: verbTeardown, ID: h.ID, Ref: h.Ref})
	if err != nil {
		return r, err
	}
	return extensions.CleanupReport{AlreadyGone: a.Report.AlreadyGone, Removed: clean(a.Report.Removed), Residue: clean(a.Report.Residue),
		StartedAt: a.Report.StartedAt, EndedAt: a.Report.EndedAt, Usage: a.Report.Usage.measured()}, nil
}

// clean makes a program's words safe for people.
func clean(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, extensions.Clean(w, 200))
	}
	return out
}
