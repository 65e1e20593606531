package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The exit codes, documented by `sandboxer help exit-codes`; stable.
const (
	exitOK          = 0
	exitFailed      = 1
	exitInvalid     = 2
	exitNotFound    = 3
	exitConflict    = 4
	exitTryAgain    = 5
	exitDenied      = 6
	exitUnsupported = 7
	// 128 + the signal's number: see interruption.
	// exec only, as timeout(1) and `docker exec` have it: everything else is
	// the command's own.
	exitExecTimeout = 124
	exitExecFailed  = 125
)

// ownExit marks the command whose exit codes are another program's.
const ownExit = "own-exit"

const exitCodesText = `Exit codes:

    0   done
    1   failed, or a check found something
    2   bad usage or bad input
    3   there is no such sandbox, host or snapshot
    4   something else holds it, or it is protected
    5   could not ask, or not decided yet: try again later
    6   a credential is missing or refused
    7   the place cannot do that
    129 interrupted by SIGHUP; 130 by SIGINT (Ctrl-C); 143 by SIGTERM

sandbox exec passes on the exit code of the command it ran; its own are

    124 the command took longer than --timeout and was killed
    125 the command could not be run at all
`

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesText}
}

// exitCode ends the program with that code and no message.
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
