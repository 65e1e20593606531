// Package execwire runs commands inside a sandbox: one protocol for every place that can start a process and
// carry its streams.
//
// Run supervises one command by a Wire, which a place fills in. Inside is the Wire of places whose transport
// starts a process in the sandbox: it runs a small POSIX sh program there (dash, busybox and bash; it needs
// nothing but the shell). The program's command line is the same for every command. The command, its folder
// and its variables travel on stdin, before the command's own input, so that no process list and no record of
// the place shows them.
//
// The program changes to the folder, starts the command in a process group of its own, ends it and all it
// began at the time limit, and reports the exit code in a frame beside the streams: a record separator, a
// nonce that the command does not know, JSON, a record separator. It marks what it starts by a variable, so
// that a command is also found by whoever looks for it later, whatever became of the connection.
//
// A place whose calls carry no streams fills in Calls, whose Transport Inside takes: input and output travel as files.
//
// A place that runs commands by a program of its own, outside, sends the same frames and uses the parts of
// Scripts:
//
//	frame.sh   say: one frame
//	watch.sh   sbx_expire: the time limit
//	kill.sh    sbx_killer: ends what a mark began
package execwire

import (
	"embed"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

//go:embed sh/*.sh
var shellFiles embed.FS

// Scripts are the programs of this package.
var Scripts = &shtext.Files{FS: shellFiles}
