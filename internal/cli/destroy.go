package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

type destroyView struct {
	ID          engine.ID    `json:"id"`
	AlreadyGone bool         `json:"already_gone"`
	Forgotten   bool         `json:"forgotten"`
	Removed     []string     `json:"removed,omitempty"`
	Residue     []string     `json:"residue,omitempty"`
	Conflicts   []string     `json:"conflicts,omitempty"`
	Charges     []chargeView `json:"charges,omitempty"`
}

func (a *app) sandboxDestroyCommand() *cobra.Command {
	var opts engine.DestroyOptions
	var protected bool
	c := &cobra.Command{
		Use:   "destroy ID|NAME...",
		Short: "End sandboxes, remove all of them and settle what they cost",
		Args:  args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			opts.Notify = a.notify
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				views, err := a.destroyAll(c.Context(), e, given, opts, protected)
				return errors.Join(err, a.show(views, func(w io.Writer) error { return printDestroyed(w, views) }))
			})
		},
	}
	c.Flags().BoolVar(&opts.Forget, "forget", false, "give up one that cannot be reached: the ledger keeps it as an orphan")
	c.Flags().BoolVar(&protected, "even-protected", false, "ignore deletion_protection")
	return c
}

// destroyAll goes on after a failure, so that one sandbox in trouble does not
// keep the others alive.
func (a *app) destroyAll(ctx context.Context, e *engine.Engine, given []string, opts engine.DestroyOptions, protected bool) ([]destroyView, error) {
	views := []destroyView{}
	var failed []error
	for _, one := range given {
		v, err := a.destroy(ctx, e, one, opts, protected)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		views = append(views, v)
	}
	return views, errors.Join(failed...)
}

func (a *app) destroy(ctx context.Context, e *engine.Engine, idOrName string, opts engine.DestroyOptions, protected bool) (destroyView, error) {
	s, err := a.find(ctx, e, idOrName)
	if err != nil {
		return destroyView{}, err
	}
	if s.Request.DeletionProtection && s.State == "ready" && !protected {
		return destroyView{}, extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) has deletion protection", s.ID, s.Name).
			WithRemedy("set deletion_protection = false in its configuration, or pass --even-protected")
	}
	r, err := e.Destroy(ctx, s.Receipt, opts)
	if err != nil {
		return destroyView{}, err
	}
	for _, n := range r.Notices {
		a.notify(n)
	}
	return destroyView{s.ID, r.AlreadyGone, r.Forgotten, r.Removed, r.Residue, r.Conflicts, chargeViews(r.Charges)}, nil
}

func printDestroyed(w io.Writer, list []destroyView) error {
	for _, v := range list {
		if _, err := fmt.Fprintln(w, strings.Join(v.lines(), "\n")); err != nil {
			return err
		}
	}
	return nil
}

func (v destroyView) lines() []string {
	lines := []string{fmt.Sprintf("%s is gone.", v.ID)}
	switch {
	case v.Forgotten:
		lines[0] = fmt.Sprintf("%s could not be reached and is forgotten; `sandboxer sweep` reports it as an orphan.", v.ID)
	case v.AlreadyGone:
		lines[0] = fmt.Sprintf("%s was gone already.", v.ID)
	}
	add := func(what string, list []string) {
		if len(list) > 0 {
			lines = append(lines, "  "+what+": "+strings.Join(list, ", "))
		}
	}
	add("removed", v.Removed)
	add("left behind on purpose", v.Residue)
	add("changed on both sides, left alone here", v.Conflicts)
	for _, c := range v.Charges {
		lines = append(lines, "  charge: "+chargeLine(c))
	}
	return lines
}
