package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The exit codes are stable and documented by `sandboxer help exit-codes`.
const (
	exitOK          = 0
	exitFailed      = 1
	exitInvalid     = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitTryAgain    = 5
	exitDenied      = 6
	exitUnsupported = 7
	// A signal's exit code is 128 plus its number; see interruption. These are exec's own, as in timeout(1)
	// and `docker exec`; every other code is the command's.
	exitExecTimeout = 124
	exitExecFailed  = 125
)

// ownExit marks the command whose exit codes are another program's.
const ownExit = "own-exit"

const exitCodesText = `Exit codes:

    0   done
    1   failed, or a check found something
    2   invalid usage or input
    3   no such sandbox, host or snapshot
    4   something else holds it, or it is protected
    5   unreachable, or the outcome is not known yet: try again later
    6   a credential is missing or refused
    7   the place does not support this
    129 interrupted by SIGHUP; 130 by SIGINT (Ctrl-C); 143 by SIGTERM

run and exec return the exit code of their command. Their own are

    124 the command was killed: it took longer than --timeout, or the sandbox ended
    125 the command could not be run, or the sandbox could not be created or destroyed
    141 the output is no longer read, as in a pipe to head
`

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "Meaning of the exit codes", Long: exitCodesText}
}

// exitCode is an error that ends the program with that code and no message.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

func execCodeOf(err error) int {
	if extensions.IsKind(err, extensions.KindTimeout) {
		return exitExecTimeout
	}
	return exitExecFailed
}

func codeOf(err error) int {
	switch extensions.KindOf(err) {
	case extensions.KindInvalid:
		return exitInvalid
	case extensions.KindNotFound:
		return exitNotFound
	case extensions.KindConflict:
		return exitConflict
	case extensions.KindIndeterminate, extensions.KindExhausted, extensions.KindUnavailable,
		extensions.KindUnreachable, extensions.KindTimeout, extensions.KindInterrupted:
		return exitTryAgain
	case extensions.KindUnauthorized:
		return exitDenied
	case extensions.KindUnsupported:
		return exitUnsupported
	}
	return exitFailed
}
