package provider

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/shirou/gopsutil/v4/process"
)

// run is what Terraform was started for, which the protocol does not say. The zero value stands for a command
// line that cannot be read.
type run struct {
	// destroys means `terraform destroy`, or plan or apply with -destroy.
	//
	// Terraform plans the configuration as it stands before it plans a destroy, to refresh. It carries out
	// nothing of that plan, but an error in it ends the run: exhausted credit or a broken host would block
	// the destroy. Such a run therefore decides only what the destroy itself needs. If the command line is
	// unknown, -refresh=false is the way out.
	destroys bool
	// replaces means plan or apply with -replace. Terraform plans the named resource as one that stays before
	// it plans its successor.
	replaces bool
	// applies means `terraform apply` without a question: with a saved plan or -auto-approve. The walks of
	// its plan and its apply look alike.
	applies bool
	// unread means -refresh=false: the provider then never hears of a tainted sandbox.
	unread bool
}

var thisRun = sync.OnceValue(func() run {
	parent, err := process.NewProcess(int32(os.Getppid()))
	if err != nil {
		return run{}
	}
	line, err := parent.CmdlineSliceWithContext(context.Background())
	if err != nil {
		return run{}
	}
	return runOf(line, os.Getenv)
})

// runOf reads a command line and the variables that add to it.
func runOf(line []string, getenv func(string) string) (r run) {
	command, args := invoked(line, getenv)
	r.destroys = command == "destroy"
	r.applies = command == "apply" && savedPlan(args)
	if command != "plan" && command != "apply" && command != "refresh" {
		return r
	}
	for _, a := range args {
		name, value, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !strings.HasPrefix(a, "-") {
			continue
		}
		r.destroys = r.destroys || name == "destroy" && value != "false"
		r.replaces = r.replaces || name == "replace"
		r.unread = r.unread || name == "refresh" && value == "false"
		r.applies = r.applies || command == "apply" && name == "auto-approve" && value != "false"
	}
	return r
}

// savedPlan reports whether the arguments of an apply end in a file rather than an option's value.
func savedPlan(args []string) bool {
	last := len(args) - 1
	if last < 0 || strings.HasPrefix(args[last], "-") {
		return false
	}
	if last == 0 || !strings.HasPrefix(args[last-1], "-") || strings.Contains(args[last-1], "=") {
		return true
	}
	switch strings.TrimLeft(args[last-1], "-") {
	case "auto-approve", "compact-warnings", "destroy", "input", "json", "lock", "no-color", "refresh", "refresh-only", "show-sensitive",
		"consolidate-warnings", "consolidate-errors":
		return true // takes no value
	}
	return false
}

// invoked reads a command line: the command, and its arguments with those that variables add.
func invoked(line []string, getenv func(string) string) (command string, args []string) {
	if len(line) == 0 {
		return "", nil
	}
	args = line[1:]
	i := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") })
	if i < 0 {
		return "", nil
	}
	command = args[i]
	return command, slices.Concat(strings.Fields(getenv("TF_CLI_ARGS")), strings.Fields(getenv("TF_CLI_ARGS_"+command)), args[i+1:])
}
