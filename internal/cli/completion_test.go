package cli_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/all"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
)

// shells read their script and print what becomes of $line at Tab, at least $want if that is so.
var shells = map[string][]string{
	"bash": {"--norc", "--noprofile", "-c", `
source <(sandboxer completion bash)
COMP_LINE=$line COMP_POINT=${#line}
read -ra COMP_WORDS <<<"$line"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_TYPE=9
__start_sandboxer 2>/dev/null # compopt: not within a completion
printf '%s\n' "${COMPREPLY[@]}"`},
	// zsh completes only at a terminal.
	"zsh": {"-f", "-c", `
zmodload zsh/zpty
await() {
	local part n=0
	until [[ $seen == *$1* ]]; do
		if zpty -rt z part; then seen+=$part; else sleep 0.05; fi
		(( ++n < 600 )) || return 1
	done
}
zpty -b z "TERM=dumb zsh -f -i"
zpty -w z 'stty cols 400; unsetopt prompt_cr prompt_sp; autoload -Uz compinit; compinit -D -u; source <(sandboxer completion zsh); print LOADED""NOW'
await LOADEDNOW
seen=
zpty -wn z "$line"$'\t'
await "$want"
zpty -d z
print -r -- "$seen" | tr -s '\r ' '\n\n'`},
	"fish": {"--no-config", "-c", `
sandboxer completion fish | source
complete -C "$line" | cut -f 1`},
}

// A command inside may be a file of the folder that goes there.
func TestACommandIsCompletedByTheShellItself(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{"run -- ./ho", "run quickstart -- ./ho", "sandbox exec web -- cat ho"} {
		cmd := exec.CommandContext(t.Context(), "sandboxer", append([]string{"__complete"}, strings.Fields(typed)...)...)
		out, err := cmd.Output()
		if want := ":0\n"; err != nil || string(out) != want { // of cobra: nothing of ours, and the shell's own files
			t.Errorf("%q: %q, %v", typed, out, err)
		}
	}
}

func TestShellsComplete(t *testing.T) {
	t.Parallel()
	exttest.Alone(t)
	state := t.TempDir()
	e, err := engine.New(engine.Options{Extensions: all.Extensions(), StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s, err := e.Create(t.Context(), engine.Request{Profile: "profile.quickstart", Name: "completed-one", TTL: "10m"}, nil, nil)
	if err != nil {
		t.Skipf("sandboxes on this machine need Linux: %v", err)
	}
	t.Cleanup(func() {
		if _, err := e.Destroy(context.Background(), s.Receipt, engine.DestroyOptions{}); err != nil {
			t.Error(err)
		}
	})
	for shell, args := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("%v: install it to try its completion", err)
			}
			for typed, want := range map[string]string{
				"sandbox recr":                         "recreate",
				"sandbox list --run":                   "--run-id",
				"quote profile.quick":                  "profile.quickstart",
				"run quick":                            "quickstart",
				"extensions e2":                        "e2b",
				"sandbox get completed":                "completed-one",
				"sandbox exec " + string(s.ID[:10]):    string(s.ID),
				"sandbox list --format ya":             "yaml",
				"prices ext.comp":                      "ext.compose-ssh",
				"sandbox destroy nothing completed-on": "completed-one",
			} {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, shell, args...)
				cmd.Env = append(os.Environ(), "SANDBOXER_STATE_DIR="+state, "HOME="+state, "line=sandboxer "+typed, "want="+want)
				out, err := cmd.Output()
				if err != nil || !slices.Contains(strings.Fields(string(out)), want) {
					t.Errorf("%q offers %q, want %s: %v", typed, out, want, err)
				}
			}
		})
	}
}
