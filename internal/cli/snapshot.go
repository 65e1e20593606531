package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// snapshotJSON is the stable JSON form of a snapshot.
type snapshotJSON struct {
	ID        string    `json:"id"`
	Account   string    `json:"account"`
	Name      string    `json:"name"`
	Sandbox   engine.ID `json:"sandbox_id"`
	State     string    `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	Extension string    `json:"extension"`
	Host      string    `json:"host,omitempty"`
	Kind      string    `json:"kind,omitempty"`
	Live      bool      `json:"live,omitempty"`
	SizeBytes int64     `json:"size_bytes"`
	Digest    string    `json:"digest,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	Retention string    `json:"retention,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
}

func snapshotOf(s engine.SnapshotView) snapshotJSON {
	return snapshotJSON{ID: s.ID, Account: s.Account, Name: s.Name, Sandbox: s.SandboxID, State: s.State, Reason: s.Reason,
		Extension: s.Extension, Host: s.HostName, Kind: s.Kind, Live: s.Live, SizeBytes: s.SizeBytes, Digest: s.Digest,
		CreatedAt: s.CreatedAt.UTC(), Retention: s.Retention, ExpiresAt: s.ExpiresAt.UTC(), EndedAt: s.EndedAt.UTC()}
}

func (a *app) snapshotCommand() *cobra.Command {
	return group("snapshot", "List and delete snapshots", a.snapshotListCommand(), a.snapshotDeleteCommand())
}

func (a *app) snapshotListCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the account's snapshots in the ledger",
		Args:  args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				found, err := e.Snapshots(c.Context(), all)
				if err != nil {
					return err
				}
				views := make([]snapshotJSON, 0, len(found))
				for _, s := range found {
					views = append(views, snapshotOf(s))
				}
				return a.show(views, func(w io.Writer) error {
					if len(views) == 0 {
						_, err := fmt.Fprintf(w, "No snapshots in account %s.\n", a.account())
						return err
					}
					return printSnapshots(w, views, time.Now())
				})
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "include deleted ones")
	return a.watched(c)
}

func printSnapshots(w io.Writer, all []snapshotJSON, now time.Time) error {
	rows := [][]string{wide(w, []string{"ID", "NAME", "STATE", "KIND", "BYTES", "PLACE", "SANDBOX", "EXPIRES"}, "CREATED", "DIGEST", "REASON")}
	for _, s := range all {
		place := s.Extension
		if s.Host != "" {
			place += "@" + s.Host
		}
		expires := "-"
		if !s.ExpiresAt.IsZero() {
			expires = withRelative(s.ExpiresAt, now)
		}
		rows = append(rows, wide(w, []string{s.ID, s.Name, s.State, s.Kind, strconv.FormatInt(s.SizeBytes, 10), place, string(s.Sandbox),
			expires}, stamp(s.CreatedAt), s.Digest, s.Reason))
	}
	return grid(w, rows)
}

func (a *app) snapshotDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "delete SNAPSHOT...",
		Short: "Delete snapshots; a snapshot that is already gone is a success",
		Args:  args(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, given []string) error {
			return a.withLedger(c.Context(), func(e *engine.Engine) error {
				deleted := []string{}
				var failed []error
				for _, id := range given {
					if err := a.deleteSnapshot(c.Context(), e, id); err != nil {
						failed = append(failed, err)
						continue
					}
					deleted = append(deleted, id)
				}
				return errors.Join(append(failed, a.show(deleted, func(w io.Writer) error {
					for _, id := range deleted {
						if _, err := fmt.Fprintf(w, "%s is deleted.\n", id); err != nil {
							return err
						}
					}
					return nil
				}))...)
			})
		},
	}
}

func (a *app) deleteSnapshot(ctx context.Context, e *engine.Engine, id string) error {
	known, err := e.LookupSnapshot(ctx, id)
	if err != nil {
		return err
	}
	told, err := e.DeleteSnapshot(ctx, known, false)
	for _, n := range told {
		a.notify(n)
	}
	return err
}
