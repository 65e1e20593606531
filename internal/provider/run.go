package provider

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/shirou/gopsutil/v4/process"
)

// destroys reports whether Terraform was started to destroy: `terraform
// destroy`, or plan or apply with -destroy. The protocol does not tell.
//
// Terraform plans the configuration as it stands before it plans a destruction,
// to refresh. Nothing of that plan is carried out, but an error in it ends the
// run: credit that is used up, or a host that broke, would keep what was made
// from being ended. So nothing is decided in such a run but what the
// destruction itself needs. Where the parent's command line cannot be read, the
// answer is no, and -refresh=false is the way out.
var destroys = sync.OnceValue(func() bool {
	parent, err := process.NewProcess(int32(os.Getppid()))
	if err != nil {
		return false
	}
	line, err := parent.CmdlineSliceWithContext(context.Background())
	return err == nil && destroying(line, os.Getenv)
})

// destroying reads a command line, and the variables that add to it.
func destroying(line []string, getenv func(string) string) bool {
	if len(line) == 0 {
		return false
	}
	args := line[1:]
	i := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if i < 0 {
		return false
	}
	command := args[i]
	if command != "plan" && command != "apply" && command != "refresh" {
		return command == "destroy"
	}
	args = slices.Concat(args[i+1:], strings.Fields(getenv("TF_CLI_ARGS")), strings.Fields(getenv("TF_CLI_ARGS_"+command)))
	return slices.ContainsFunc(args, func(a string) bool {
		name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		return strings.HasPrefix(a, "-") && name == "destroy" && value != "false"
	})
}
