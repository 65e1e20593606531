package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	var run string
	c := &cobra.Command{
		Use:   "destroy ID|NAME...",
		Short: "Destroy sandboxes and settle their charges",
		Example: `  sandboxer sandbox destroy e2e-main
  sandboxer sandbox destroy --run-id "$RUN"`,
		RunE: func(c *cobra.Command, given []string) error {
			if byRun := c.Flags().Changed("run-id"); byRun == (len(given) > 0) {
				return usageError(c, errors.New("give sandboxes, or only --run-id"))
			} else if byRun && strings.TrimSpace(run) == "" {
				return usageError(c, errors.New("--run-id is empty; check that its variable is set"))
			}
			opts.Notify = a.notify
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				if run != "" {
					all, err := e.List(c.Context(), false)
					if err != nil {
						return err
					}
					given = idsOf(ofRun(all, run))
				}
				views, err := a.destroyAll(c.Context(), e, given, opts, protected)
				if run != "" && len(given) == 0 {
					a.say("note: no sandbox of account %s belongs to run %s", a.account(), extensions.Clean(run, maxCell))
				}
				return errors.Join(err, a.show(views, func(w io.Writer) error { return printDestroyed(w, views) }))
			})
		},
	}
	c.Flags().BoolVar(&opts.Forget, "forget", false, "forget a sandbox that cannot be reached: the ledger keeps it as an orphan")
	c.Flags().BoolVar(&opts.All, "force", false, "end a shared sandbox for all of its holders")
	c.Flags().StringVar(&run, "run-id", "", "all sandboxes of the account whose consumer has this run `id`")
	c.Flags().BoolVar(&protected, "even-protected", false, "ignore deletion_protection")
	return c
}

// ofRun returns the sandboxes of one run of their consumer.
func ofRun(all []engine.Sandbox, run string) []engine.Sandbox {
	return slices.DeleteFunc(all, func(s engine.Sandbox) bool { return s.Request.Consumer.RunID != run })
}

func idsOf(all []engine.Sandbox) []string {
	ids := make([]string, len(all))
	for i, s := range all {
		ids[i] = string(s.ID)
	}
	return ids
}

// destroyAll continues after a failure, so that one broken sandbox does not keep the others alive.
func (a *app) destroyAll(ctx context.Context, e *engine.Engine, given []string, opts engine.DestroyOptions,
	protected bool) ([]destroyView, error) {
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

func (a *app) destroy(ctx context.Context, e *engine.Engine, idOrName string, opts engine.DestroyOptions,
	protected bool) (destroyView, error) {
	s, err := a.find(ctx, e, idOrName)
	if err != nil {
		return destroyView{}, err
	}
	if err := unprotected(s, protected); err != nil {
		return destroyView{}, err
	}
	ctx, done := a.working(ctx, "Destroying "+string(s.ID))
	r, err := e.Destroy(ctx, s.Receipt, opts)
	done()
	if err != nil {
		return destroyView{}, err
	}
	for _, n := range r.Notices {
		a.notify(n)
	}
	return destroyView{s.ID, r.AlreadyGone, r.Forgotten, r.Removed, r.Residue, r.Conflicts, chargeViews(r.Charges)}, nil
}

// unprotected refuses to end a protected sandbox, unless that was asked for.
func unprotected(s engine.Sandbox, asked bool) error {
	if !s.Request.DeletionProtection || s.State != "ready" || asked {
		return nil
	}
	return extensions.Errorf(extensions.KindConflict, "sandbox %s (%s) has deletion protection", s.ID, s.Name).
		WithRemedy("set deletion_protection = false in its configuration and apply, or pass --even-protected")
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
		lines[0] = fmt.Sprintf("Forgot %s, which could not be reached; `sandboxer sweep` reports it as an orphan.", v.ID)
	case v.AlreadyGone:
		lines[0] = fmt.Sprintf("%s was already gone.", v.ID)
	}
	add := func(what string, list []string) {
		if len(list) > 0 {
			lines = append(lines, "  "+what+": "+strings.Join(list, ", "))
		}
	}
	add("removed", v.Removed)
	add("residue left on purpose", v.Residue)
	add("changed on both sides, not overwritten here", v.Conflicts)
	for _, c := range v.Charges {
		lines = append(lines, "  charge: "+chargeLine(c))
	}
	return lines
}
