package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// requestFlags are the flags of a command that makes a sandbox.
type requestFlags struct {
	placeFlags
	env, secrets []string
}

// bindSpec adds what a sandbox is and where it runs.
func (f *requestFlags) bindSpec(c *cobra.Command) {
	f.add(c)
	c.Flags().StringArrayVarP(&f.env, "env", "e", nil, "environment variable inside, `key=value`; repeatable")
}

// bindLife adds what one sandbox may have otherwise than another of the same spec.
func (f *requestFlags) bindLife(fl *pflag.FlagSet) {
	fl.StringVarP(&f.req.Name, "name", "n", "", "`name`, unique in the account while it lives (default: its ID)")
	fl.StringVar(&f.req.TTL, "ttl", "", "`duration` such as 90s, 2h, 1d (default: the profile's)")
	fl.StringVar(&f.req.MaxCost, "max-cost", "", "refuse above this `amount`, such as \"1.00 USD\"")
	fl.StringVar(&f.req.Billing, "billing", "", "who pays the vendor, `platform` or byok (your own key)")
	fl.BoolVar(&f.req.DeletionProtection, "protect", false, "refuse to destroy it without --even-protected")
	bindSecrets(fl, &f.secrets)
	fl.StringVar(&f.req.Consumer.Actor, "actor", "", "who it runs for: `adm` (a person), agt (an agent) or atm (automation)")
	fl.StringVar(&f.req.Consumer.Harness, "harness", "", "`name` of the program that it runs for")
	fl.StringVar(&f.req.Consumer.RunID, "run-id", "", "`id` of the run that it belongs to; see sandbox destroy --run-id")
	fl.StringVar(&f.req.Consumer.SessionID, "session-id", "", "`id` of the session that it belongs to")
	fl.StringVar(&f.req.Consumer.JobID, "job-id", "", "`id` of the job that it belongs to")
}

func bindSecrets(fl *pflag.FlagSet, to *[]string) {
	fl.StringArrayVar(to, "secret", nil,
		"environment variable inside, `key=ref`, with the value that env://NAME, file:///path or exec://program gives; repeatable")
}

// request returns what the flags ask for of a profile, whose name may lack the prefix.
func (f *requestFlags) request(ctx context.Context, profile string) (req engine.Request, err error) {
	if req, err = f.placeFlags.request(profile); err != nil {
		return req, err
	}
	if req.Env, err = pairs("env", f.env); err != nil {
		return req, err
	}
	req.Secrets, err = resolved(ctx, f.secrets)
	return req, err
}

// resolved reads the secrets that key=ref flags name.
func resolved(ctx context.Context, flags []string) (map[string]engine.Secret, error) {
	refs, err := pairs("secret", flags)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	out := make(map[string]engine.Secret, len(refs))
	for name, ref := range refs {
		if out[name], err = engine.ResolveSecret(ctx, ref); err != nil {
			return nil, err
		}
	}
	return out, nil
}
