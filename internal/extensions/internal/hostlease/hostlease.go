// Package hostlease ends sandboxes on a host in time, with nobody watching: a lease is a file in the sandbox's
// folder, and one small loop per login and host reads all of them. Extending a sandbox is one small write. The
// loop is started by systemd where the host has it, else as a session of its own; after a reboot the next
// contact starts it again, and the wall clock decides what is over.
//
// It is sh for scripts that run on the host, and knows folders, locks and clocks. How objects are listed and
// removed by their label is the place's: loop.sh and folder.sh say which functions it defines.
//
//	host.sh     answers, clock, locks, manifest, limits; in every operation
//	root.sh     check_root: nobody else can change the host root; in every operation
//	lease.sh    lease_write, lease_left: the deadline
//	timer.sh    timer_start: makes sure that a loop watches the leases; sets timer
//	folder.sh   remove_folder, leave_root, end_session
//	idle.sh     use_begin, and the loop's look: the end by idleness
//	loop.sh     reaper_main: the loop and its tasks
package hostlease

import (
	"embed"
	"strconv"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

//go:embed sh/*.sh
var shellFiles embed.FS

// Scripts are the programs of this package.
var Scripts = &shtext.Files{FS: shellFiles}

// Terms returns the arguments of lease_write for a deadline: what remains of it now in 1/100 s, rounded up, 0
// if it has passed, and the deadline for people.
func Terms(now, until time.Time) (remaining, text string) {
	return strconv.FormatInt(deadline.Left(now, until, 10*time.Millisecond), 10), until.UTC().Format(time.RFC3339Nano)
}
