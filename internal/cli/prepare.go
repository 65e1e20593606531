package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

type preparedView struct {
	Profile string `json:"profile"`
	Place   string `json:"place"`
	Images  bool   `json:"images"` // false: it runs no images there
}

func (a *app) prepareCommand() *cobra.Command {
	var f placeFlags
	c := &cobra.Command{
		Use:   "prepare PROFILE...",
		Short: "Pull and build the images of profiles ahead of their sandboxes",
		Long: `Pulls and builds the images of profiles at the place where a sandbox would run now, so
that a batch of sandboxes starts at once. It creates no sandbox and costs nothing here.
A place keeps a built image for a while, until a sandbox uses it.`,
		Example: `  sandboxer prepare profile.build -i repo=.
  sandboxer prepare container agent-dev --host build`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				views := []preparedView{}
				for _, profile := range given {
					req, err := f.request(profile)
					if err != nil {
						return err
					}
					ctx, done := a.working(c.Context(), "Preparing "+profile)
					p, err := e.Prepare(ctx, req, a.notify)
					done()
					if err != nil {
						return err
					}
					views = append(views, preparedView{p.Profile, placeName(p.Extension, p.Host), p.Images})
				}
				return a.show(views, func(w io.Writer) error { return printPrepared(w, views) })
			})
		},
	}
	f.add(c)
	return c
}

func printPrepared(w io.Writer, list []preparedView) error {
	for _, v := range list {
		text := "%s is prepared at %s.\n"
		if !v.Images {
			text = "%s has nothing to prepare at %s.\n"
		}
		if _, err := fmt.Fprintf(w, text, v.Profile, v.Place); err != nil {
			return err
		}
	}
	return nil
}
