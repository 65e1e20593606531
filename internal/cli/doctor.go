package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The verdicts of doctor.
const (
	checkOK     = "ok"
	checkNote   = "note"   // it does not work, and nobody configured it
	checkBroken = "broken" // it is configured and does not work
)

type checkView struct {
	Status string `json:"status"` // ok | note | broken
	What   string `json:"what"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine, hosts, credentials and the ledger, and say what to fix",
		Long: `Checks the catalog, the state folder, the ledger, this machine, every registered host and
every vendor with credentials, and says how to fix each problem. It leaves nothing behind.
The exit code is 1 if something configured does not work. A place that is not configured
is only a note.`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, done := a.working(c.Context(), "Asking the places")
			checks := a.examine(ctx)
			done()
			if err := a.show(checks, func(w io.Writer) error { return printDoctor(w, checks) }); err != nil {
				return err
			}
			var broken int64
			for _, v := range checks {
				if v.Status == checkBroken {
					broken++
				}
			}
			if broken == 0 {
				return nil
			}
			return extensions.Errorf(extensions.KindFailed, "%s configured and %s not work",
				count(broken, "thing is", "things are"), map[bool]string{true: "does", false: "do"}[broken == 1]).
				WithRemedy("fix each line marked broken")
		},
	}
}

// examine lists what was found. A mistake that keeps all else from being looked at is alone.
func (a *app) examine(ctx context.Context) []checkView {
	checks := []checkView{{Status: checkOK, What: "program",
		Found: fmt.Sprintf("sandboxer %s, %s/%s", a.version, runtime.GOOS, runtime.GOARCH)}}
	err := a.withEngine(func(e *engine.Engine) error {
		checks = append(checks, a.checkCatalog(e)...)
		checks = append(checks, checkStateDir(e), a.checkLedger(ctx, e))
		pools, err := e.Survey(ctx, true)
		if err != nil && !broken(checks) {
			checks = append(checks, failedCheck("hosts", err))
		}
		checks = append(checks, checkPools(pools)...)
		return nil
	})
	if err != nil {
		checks = append(checks, failedCheck("configuration", err))
	}
	return checks
}

func broken(checks []checkView) bool {
	for _, c := range checks {
		if c.Status == checkBroken {
			return true
		}
	}
	return false
}

func failedCheck(what string, err error) checkView {
	return checkView{checkBroken, what, err.Error(), extensions.RemedyOf(err)}
}

func (a *app) checkCatalog(e *engine.Engine) []checkView {
	profiles, err := e.Profiles()
	if err != nil {
		return []checkView{failedCheck("catalog", err)}
	}
	from := "built in"
	if len(a.global.catalog) > 0 {
		from += ", " + strings.Join(a.global.catalog, ", ")
	}
	checks := []checkView{{Status: checkOK, What: "catalog", Found: fmt.Sprintf("%s, %d extensions (%s)",
		count(int64(len(profiles)), "profile", "profiles"), len(e.Bindings()), from)}}
	for _, n := range e.Warnings() {
		checks = append(checks, checkView{Status: checkNote, What: n.Summary, Found: n.Detail})
	}
	return checks
}

func checkStateDir(e *engine.Engine) checkView {
	const what = "state folder"
	dir, err := e.TryStateDir()
	if err != nil {
		return failedCheck(what, err)
	}
	return checkView{Status: checkOK, What: what, Found: dir + " can be written"}
}

func (a *app) checkLedger(ctx context.Context, e *engine.Engine) checkView {
	const what = "ledger"
	at := e.LedgerURL()
	switch err := e.LedgerExists(ctx); {
	case err == nil:
		return checkView{Status: checkOK, What: what, Found: at}
	case extensions.IsKind(err, extensions.KindNotFound) && a.namedLedger() == "":
		return checkView{checkNote, what, "no ledger yet at " + at, "nothing: the first create makes it"}
	default:
		return failedCheck(what, err)
	}
}

// checkPools judges the places. A host works if anything can run there.
func checkPools(pools []engine.Pool) (checks []checkView) {
	works := map[string]bool{}
	for _, p := range pools {
		if p.Host != nil && p.Works() {
			works[p.Host.Name] = true
		}
	}
	for _, p := range pools {
		v := viewOfPool(p)
		c := checkView{Status: checkOK, What: p.Binding.ID + " at " + v.name(), Found: cmp.Or(v.Substrate, "it answers"), Remedy: v.Remedy}
		if len(v.Missing) > 0 {
			c.Found = strings.Join(append(nonEmpty(v.Substrate), v.Missing...), "; ")
		}
		if !p.Works() {
			c.Status = checkNote
			configured := !p.Binding.BuiltIn() || p.Given
			if p.Host != nil {
				configured = !works[p.Host.Name]
			}
			if configured {
				c.Status = checkBroken
			}
		}
		checks = append(checks, c)
	}
	return checks
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func printDoctor(w io.Writer, list []checkView) error {
	for _, c := range list {
		lines := []string{fmt.Sprintf("%-6s  %s: %s", c.Status, c.What, extensions.Clean(c.Found, maxMissing))}
		if c.Remedy != "" && c.Status != checkOK {
			lines = append(lines, "        what to do: "+extensions.Clean(c.Remedy, maxMissing))
		}
		if _, err := fmt.Fprintln(w, wrapped(w, lines)); err != nil {
			return err
		}
	}
	return nil
}
