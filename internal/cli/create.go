package cli

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func (a *app) sandboxCreateCommand() *cobra.Command {
	var f requestFlags
	c := &cobra.Command{
		Use:   "create PROFILE",
		Short: "Create a sandbox and print its ID",
		Long: `Creates a sandbox from a profile, waits until it is ready, and prints its ID alone. It
lives until it is destroyed or its ttl ends.`,
		Example: `  sandboxer sandbox create profile.quickstart --ttl 1h
  id=$(sandboxer sandbox create profile.compose-e2e -i repo=. --name e2e-main --run-id "$RUN")`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			req, err := f.request(c.Context(), given[0])
			if err != nil {
				return err
			}
			return a.withEngine(func(e *engine.Engine) error { return a.create(c.Context(), e, req) })
		},
	}
	f.bindSpec(c)
	f.bindLife(c.Flags())
	return c
}

// create prints the ID of what was made. A failed create names in its error what it left.
func (a *app) create(ctx context.Context, e *engine.Engine, req engine.Request) error {
	if req.FromSandbox == "" { // a fork has its source's inputs
		var err error
		if req, err = e.Here(req); err != nil {
			return err
		}
	}
	ctx, done := a.working(ctx, "Creating a sandbox")
	s, err := e.Create(ctx, req, nil, a.notify)
	done()
	if err != nil {
		return err
	}
	return a.showMade(s)
}

func (a *app) showMade(s engine.Sandbox) error {
	for _, n := range s.Notices {
		a.notify(n)
	}
	return a.showID(viewOf(s), string(s.ID))
}

func (a *app) sandboxRestoreCommand() *cobra.Command {
	var f requestFlags
	c := &cobra.Command{
		Use:   "restore SNAPSHOT [PROFILE]",
		Short: "Create a sandbox from a snapshot and print its ID",
		Long: `Creates a sandbox that starts from a snapshot. Without PROFILE, its profile, inputs,
environment, image, resources, isolation, extension and billing default to those of the
snapshot's source. Secrets are stored nowhere: give them again.`,
		Example: "  sandboxer sandbox restore snp-abcdefghijklmnopqrst --name again --ttl 1h",
		Args:    args(cobra.RangeArgs(1, 2)),
		RunE: func(c *cobra.Command, given []string) error {
			req, err := f.request(c.Context(), strings.Join(given[1:], ""))
			if err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				kept, err := e.LookupSnapshot(c.Context(), given[0])
				if err != nil {
					return err
				}
				req.FromSnapshot = kept.ID
				if len(given) == 1 {
					of, err := e.Lookup(c.Context(), kept.SandboxID, "", "")
					if err != nil {
						return err
					}
					req = like(of, req)
				}
				return a.create(c.Context(), e, req)
			})
		},
	}
	f.bindSpec(c)
	f.bindLife(c.Flags())
	return c
}

func (a *app) sandboxForkCommand() *cobra.Command {
	var f requestFlags
	c := &cobra.Command{
		Use:   "fork ID|NAME",
		Short: "Create a copy of a live sandbox and print its ID",
		Long: `Creates a sandbox with the files of a live one as they are now, at the same place. Only
name, lifetime, secrets and who it runs for differ from the source's, and nobody shares
it. Secrets are stored nowhere: give them again.`,
		Example: "  sandboxer sandbox fork e2e-main --name e2e-try --ttl 30m",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			req, err := f.request(c.Context(), strings.Join(given[1:], ""))
			if err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				source, err := a.find(c.Context(), e, given[0])
				if err != nil {
					return err
				}
				req.FromSandbox = string(source.ID)
				return a.create(c.Context(), e, like(source, req))
			})
		},
	}
	f.bindLife(c.Flags())
	return c
}

// like returns req with what it does not say taken from the request of another sandbox. The new one is not shared: nobody
// else finds a copy by the share_key of its source.
func like(of engine.Sandbox, req engine.Request) engine.Request {
	was := of.Request
	req.Profile, req.Scope = of.Profile+"@"+of.Version, "session"
	req.Isolation, req.Image, req.Resources = was.Isolation, was.Image, was.Resources
	req.Billing = cmp.Or(req.Billing, was.Billing)
	if len(req.Hosts) == 0 { // a host that is named decides which extension fits
		req.Extension = cmp.Or(req.Extension, was.Extension)
	}
	over := func(base, own map[string]string) map[string]string {
		if len(base) == 0 {
			return own
		}
		base = maps.Clone(base)
		maps.Copy(base, own)
		return base
	}
	req.Env = over(was.Env, req.Env)
	inputs := maps.Clone(was.Inputs)
	if inputs == nil {
		inputs = map[string]any{}
	}
	maps.Copy(inputs, req.Inputs)
	req.Inputs = inputs
	return req
}

func (a *app) sandboxRecreateCommand() *cobra.Command {
	var secrets []string
	c := &cobra.Command{
		Use:   "recreate ID|NAME",
		Short: "Destroy a sandbox and create it again under its ID and name",
		Long: `Destroys a sandbox and creates it again from its original request. It keeps its ID and
name; its ttl starts again. A mirrored workspace is synced back first. Secrets are
stored nowhere: give every one again.`,
		Example: "  sandboxer sandbox recreate e2e-main --secret TOKEN=env://TOKEN",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			values, err := resolved(c.Context(), secrets)
			if err != nil {
				return err
			}
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				known, err := a.find(c.Context(), e, given[0])
				if err == nil {
					err = unprotected(known, false)
				}
				if err != nil {
					return err
				}
				ctx, done := a.working(c.Context(), "Recreating "+string(known.ID))
				s, err := e.Recreate(ctx, known.Receipt, values, a.notify)
				done()
				if err != nil {
					return err
				}
				return a.showMade(s)
			})
		},
	}
	bindSecrets(c.Flags(), &secrets)
	return c
}

func (a *app) sandboxSnapshotCommand() *cobra.Command {
	var req engine.SnapshotRequest
	c := &cobra.Command{
		Use:   "snapshot ID|NAME",
		Short: "Keep an image of a live sandbox and print its ID",
		Long: `Keeps an image of a sandbox, which outlives the sandbox. The sandbox stands still
meanwhile, unless --live allows files from different moments. Where a snapshot ends its
sandbox, you must pass --allow-end.`,
		Example: "  sandboxer sandbox snapshot e2e-main --name seeded --retention 30d",
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				known, err := a.find(c.Context(), e, given[0])
				if err != nil {
					return err
				}
				told, err := e.CheckSnapshot(c.Context(), known.ID, req)
				if err != nil {
					return err
				}
				for _, n := range told {
					a.notify(n)
				}
				ctx, done := a.working(c.Context(), "Taking a snapshot of "+string(known.ID))
				kept, err := e.Snapshot(ctx, known.Receipt, req)
				done()
				for _, n := range kept.Notices {
					a.notify(n)
				}
				if err != nil {
					return err
				}
				return a.showID(snapshotOf(kept), kept.ID)
			})
		},
	}
	f := c.Flags()
	f.StringVarP(&req.Name, "name", "n", "", "`name` (default: its ID)")
	f.StringVar(&req.Kind, "kind", "", "`kind` of snapshot, one of those its place has (default: the place's)")
	f.BoolVar(&req.Live, "live", false, "take it while the sandbox keeps running")
	f.BoolVar(&req.AllowEnd, "allow-end", false, "allow it to end the sandbox, where the place has no other snapshots")
	f.StringVar(&req.Retention, "retention", "", "keep it for this `duration`, such as 30d (default: until it is deleted)")
	return c
}

type syncView struct {
	ID        engine.ID `json:"id"`
	Changed   []string  `json:"changed"`
	Conflicts []string  `json:"conflicts"` // changed on both sides, or not to be had; left alone here
}

func (a *app) sandboxSyncCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sync ID|NAME",
		Short: "Sync a mirrored workspace back now",
		Long: `Copies the changes in a mirrored workspace back to its folder on this machine. A file
that changed on both sides is listed and not overwritten; the exit code is then 4.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				known, err := a.find(c.Context(), e, given[0])
				if err != nil {
					return err
				}
				ctx, done := a.working(c.Context(), "Syncing back the workspace of "+string(known.ID))
				changed, conflicts, err := e.SyncBack(ctx, known.Receipt)
				done()
				if err != nil {
					return err
				}
				v := syncView{known.ID, list(changed), list(conflicts)}
				return errors.Join(a.show(v, v.print), v.err(known.Receipt.Mirror))
			})
		},
	}
}
