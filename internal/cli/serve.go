package cli

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

func (a *app) ledgerServeCommand() *cobra.Command {
	var o engine.ServeOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Give out the ledger over HTTP, to the holders of tokens",
		Long: `Give out the ledger over HTTP, to the holders of tokens.

Clients set ledger = "https://HOST:PORT" and SANDBOXER_LEDGER_TOKEN. A token
sees and changes what is its account's. Prices are those of this machine's
catalog, times are within this machine's clock, and credit and budgets are
changed here only. /healthz answers 200 while the ledger can be read. An
interrupt or SIGTERM ends the server when the requests under way are answered.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				o.Log = slog.New(slog.NewJSONHandler(a.err, nil))
				o.Ready = func(url string) {
					o.Log.Info("serving", slog.String("url", url), slog.String("ledger", e.LedgerURL()))
				}
				return e.ServeLedger(c.Context(), o)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", "127.0.0.1:7777", "`host:port` to listen on")
	f.StringVar(&o.Tokens, "tokens", "", "`file` of tokens (default: ledger-tokens.yaml in the state folder)")
	f.StringVar(&o.Certificate, "tls-cert", "", "PEM `file` with the certificate and those that signed it; read again when it changes")
	f.StringVar(&o.Key, "tls-key", "", "PEM `file` with the certificate's key")
	f.Float64Var(&o.PerSecond, "rate", 100, "requests a second that one token may make")
	return c
}

type tokenView struct {
	ID        string    `json:"id"`
	Account   string    `json:"account"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Token     string    `json:"token,omitempty"`
}

func (a *app) ledgerTokenCommand() *cobra.Command {
	var file string
	c := group("token", "Make, list and revoke the tokens of a ledger server",
		a.tokenCreateCommand(&file), a.tokenListCommand(&file), a.tokenRevokeCommand(&file))
	c.PersistentFlags().StringVar(&file, "tokens", "", "`file` of tokens (default: ledger-tokens.yaml in the state folder)")
	return c
}

func (a *app) tokenCreateCommand(file *string) *cobra.Command {
	var ttl durationValue
	c := &cobra.Command{
		Use:   "create ACCOUNT",
		Short: "Make a token for org/workspace, or for all of an org",
		Long: `Make a token for org/workspace, or for all of an org. It is printed once:
the file keeps only its SHA-256. A running server knows it at once.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				secret, t, err := e.CreateLedgerToken(*file, given[0], time.Duration(ttl))
				if err != nil {
					return err
				}
				v := tokenView{t.ID, t.Account, t.CreatedAt.UTC(), t.ExpiresAt.UTC(), secret.Reveal()}
				return a.show(v, func(w io.Writer) error {
					a.say("note: %s for %s; it is shown this once", v.ID, v.Account)
					_, err := fmt.Fprintln(w, v.Token)
					return err
				})
			})
		},
	}
	c.Flags().Var(&ttl, "ttl", "how long it is good for, such as 12h or 90d (default: until it is revoked)")
	return c
}

func (a *app) tokenListCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List tokens: whose they are, not what they are",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				all, err := e.LedgerTokens(*file)
				if err != nil {
					return err
				}
				views := make([]tokenView, 0, len(all))
				rows := [][]string{{"ID", "ACCOUNT", "CREATED", "EXPIRES"}}
				for _, t := range all {
					views = append(views, tokenView{ID: t.ID, Account: t.Account, CreatedAt: t.CreatedAt.UTC(), ExpiresAt: t.ExpiresAt.UTC()})
					rows = append(rows, []string{t.ID, t.Account, stamp(t.CreatedAt), stamp(t.ExpiresAt)})
				}
				return a.show(views, func(w io.Writer) error { return grid(w, rows) })
			})
		},
	}
}

func (a *app) tokenRevokeCommand(file *string) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Remove a token; a running server refuses it at once",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			return a.withEngine(func(e *engine.Engine) error {
				if err := e.RevokeLedgerToken(*file, given[0]); err != nil {
					return err
				}
				a.say("note: %s is revoked", given[0])
				return nil
			})
		},
	}
}
