package life

import (
	"context"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/place"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// untold stands for the output of a command that may hold secrets which nobody here can hide.
const untold = "; its output is not shown, because it may contain the sandbox's secrets, which are unknown here"

// hideOwnTime limits the question for secrets.
const hideOwnTime = 30 * time.Second

// hideOwn hides a sandbox's own secrets in what is told of it, and returns false if they stay unknown. The run that
// made it knows them, and no record does; another run asks the sandbox, and keeps the answer in memory.
func hideOwn(ctx context.Context, b *place.Backend, row ledger.Sandbox) bool {
	if len(row.Spec) == 0 { // the ledger that knows their names is not here
		return false
	}
	spec := specOf(row)
	if b.Hides(row.ID, spec.SecretNames) {
		return true
	}
	res, err := b.Exec(ctx, row.Handle, place.Command{Op: "read-secrets",
		ExecRequest: extensions.ExecRequest{Shell: readSecrets(spec), Timeout: hideOwnTime}})
	values := strings.Split(string(res.Stdout), "\x00")
	if err != nil || res.ExitCode != 0 || res.StdoutTruncated || len(values) != len(spec.SecretNames)+1 {
		return false
	}
	own := map[string]extensions.Secret{}
	for i, name := range spec.SecretNames {
		own[name] = extensions.NewSecret(values[i])
	}
	b.Hide(row.ID, own)
	return true
}

// printedBy returns what a sandbox's command printed, for a message.
func printedBy(ctx context.Context, b *place.Backend, row ledger.Sandbox, out *tail) string {
	if !hideOwn(ctx, b, row) {
		return untold
	}
	return out.lines(b.Redactor(row.ID, nil))
}

// readSecrets returns a script that prints the secrets in the order of their names, a NUL after each.
func readSecrets(spec extensions.Spec) string {
	var script strings.Builder
	script.WriteString("set -e\n")
	for _, name := range spec.SecretNames {
		if spec.Delivery() == extensions.SecretsFile {
			script.WriteString("cat " + extensions.SecretsDir + "/" + name + "; printf '\\0'\n")
		} else {
			script.WriteString(`printf '%s\0' "$` + name + "\"\n")
		}
	}
	return script.String()
}
