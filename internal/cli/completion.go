package cli

import (
	"io"

	"github.com/spf13/cobra"
)

// withoutPackage replaces what the bash script takes from the package bash-completion, where that is not installed.
const withoutPackage = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    _get_comp_words_by_ref() {
        local line=${COMP_LINE:0:COMP_POINT}
        read -ra words <<<"$line"
        [[ $line != *[[:space:]] ]] || words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]}
        prev=${words[cword > 0 ? cword - 1 : 0]}
    }
fi
if ! declare -F _filedir >/dev/null 2>&1; then
    _filedir() {
        compopt -o filenames
        local found kind=-f
        [[ $1 != -d ]] || kind=-d
        COMPREPLY=()
        while IFS= read -r found; do COMPREPLY+=("$found"); done < <(compgen $kind -- "$cur")
    }
fi
`

func (a *app) completionCommand() *cobra.Command {
	c := group("completion", "Print the script that completes commands, flags, profiles and sandboxes in a shell")
	for _, s := range []struct {
		shell, install string
		print          func(*cobra.Command, io.Writer) error
	}{
		{"bash", `  source <(sandboxer completion bash)                                      # this shell
  sandboxer completion bash >~/.local/share/bash-completion/completions/sandboxer   # every one`,
			func(root *cobra.Command, w io.Writer) error {
				if err := root.GenBashCompletionV2(w, true); err != nil {
					return err
				}
				_, err := io.WriteString(w, withoutPackage)
				return err
			}},
		{"zsh", `  source <(sandboxer completion zsh)                     # this shell, after compinit
  sandboxer completion zsh >"${fpath[1]}/_sandboxer"      # every one`, (*cobra.Command).GenZshCompletion},
		{"fish", `  sandboxer completion fish | source                                       # this shell
  sandboxer completion fish >~/.config/fish/completions/sandboxer.fish     # every one`,
			func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }},
		{"powershell", "  sandboxer completion powershell | Out-String | Invoke-Expression", (*cobra.Command).GenPowerShellCompletionWithDesc},
	} {
		c.AddCommand(&cobra.Command{Use: s.shell, Short: "Print the script for " + s.shell, Example: s.install, Args: args(cobra.NoArgs),
			RunE: func(c *cobra.Command, _ []string) error { return s.print(c.Root(), a.out) }})
	}
	return c
}
