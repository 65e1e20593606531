package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	watchEvery  = "2s"
	leastWatch  = 100 * time.Millisecond
	resizeCheck = 200 * time.Millisecond
)

// watched gives a listing --watch: it is made again and again until interrupted. On a terminal a table is drawn over
// the one before; elsewhere, and for programs, it is printed whenever it has changed.
func (a *app) watched(c *cobra.Command) *cobra.Command {
	var every time.Duration
	once := c.RunE
	c.Flags().VarP((*durationValue)(&every), "watch", "w", "list again every `duration` (default 2s), until interrupted")
	c.Flags().Lookup("watch").NoOptDefVal = watchEvery
	c.RunE = func(c *cobra.Command, given []string) error {
		if !c.Flags().Changed("watch") {
			return once(c, given)
		}
		if every < leastWatch {
			return usageError(c, fmt.Errorf("--watch %s is below %s", every, leastWatch))
		}
		return a.watch(c.Context(), every, func() error { return once(c, given) })
	}
	return c
}

func (a *app) watch(ctx context.Context, every time.Duration, list func() error) error {
	out := a.out
	defer func() { a.out = out }()
	last, drawn := "", false
	for {
		var text bytes.Buffer
		a.out = &text
		err := list()
		if ctx.Err() != nil {
			return nil // the user stopped watching
		}
		if err != nil {
			return err
		}
		width, height := a.screen.size()
		switch {
		case height > 0 && !a.structured():
			err = draw(out, text.String(), height, !drawn)
			drawn = true
		case text.String() != last:
			_, err = out.Write(text.Bytes())
		}
		if err != nil {
			return err
		}
		last = text.String()
		if !a.pause(ctx, every, width) {
			return nil
		}
	}
}

// draw replaces what the terminal shows, leaving out what is below its end.
func draw(w io.Writer, text string, height int, first bool) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) >= height {
		lines = append(lines[:max(height-2, 0)], "…")
	}
	const home, restOfLine, below, everything = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[2J"
	start := home
	if first {
		start = everything + home
	}
	_, err := io.WriteString(w, start+strings.Join(lines, restOfLine+"\n")+restOfLine+"\n"+below)
	return err
}

// pause waits for the next listing, or until the terminal has another width. It reports false if the user stopped.
func (a *app) pause(ctx context.Context, every time.Duration, width int) bool {
	end := time.NewTimer(every)
	defer end.Stop()
	look := time.NewTicker(resizeCheck)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-end.C:
			return true
		case <-look.C:
			if now, _ := a.screen.size(); now != width {
				return true
			}
		}
	}
}
