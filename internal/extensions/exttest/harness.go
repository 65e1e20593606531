package exttest

import (
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Harness is what the suite has to know of one extension. New and Config are
// required. Functions get the TB of the check that calls them and may fail it
// or register cleanups with it.
type Harness struct {
	// New returns the extension under test.
	New func(t testing.TB) extensions.Extension
	// Config returns the configuration of a fresh place that nothing else
	// uses. Account must be set. Checks add credentials of their own where
	// the descriptor declares some.
	Config func(t testing.TB) extensions.Config
	// Spec adapts the suite's minimal spec to the place; nil leaves it as
	// built by the package's Spec.
	Spec func(t testing.TB, cfg extensions.Config, spec extensions.Spec) extensions.Spec

	// The hooks below stay nil where the place cannot offer them.

	// Unreachable makes everything behind cfg unreachable until the check ends.
	Unreachable func(t testing.TB, cfg extensions.Config)
	// Unauthorized returns cfg with credentials that the place refuses.
	Unauthorized func(t testing.TB, cfg extensions.Config) extensions.Config
	// Exhaust makes the place refuse the next create for want of room or quota.
	Exhaust func(t testing.TB, cfg extensions.Config)
	// LoseAnswer makes the next create succeed and its answer get lost.
	LoseAnswer func(t testing.TB, cfg extensions.Config)
	// Vanish makes a sandbox disappear behind the adapter's back.
	Vanish func(t testing.TB, cfg extensions.Config, h extensions.Handle)
	// Relabel makes the backend object carry another sandbox's id.
	Relabel func(t testing.TB, cfg extensions.Config, h extensions.Handle, id extensions.ID)
	// RelabelSnapshot is Relabel for a snapshot.
	RelabelSnapshot func(t testing.TB, cfg extensions.Config, h extensions.SnapshotHandle, id string)
	// Advance lets d pass for the place; nil waits. The suite asks for a few
	// seconds where it is nil.
	Advance func(t testing.TB, cfg extensions.Config, d time.Duration)
	// Settle lets a find that is eventual catch up; nil waits for
	// Descriptor.Find.Settle.
	Settle func(t testing.TB, cfg extensions.Config)
	// Residue lists what is left at the place: processes, mounts, folders,
	// objects. After every sandbox of it is torn down, the list is what it
	// was before the first one.
	Residue func(t testing.TB, cfg extensions.Config) []string
	// Outside reads everything the place keeps outside its sandboxes that a
	// secret could have reached: file contents, argument lists, logs.
	Outside func(t testing.TB, cfg extensions.Config) []string
	// Log makes a process of the sandbox print a line that Logs must show;
	// nil runs a command that prints it.
	Log func(t testing.TB, b extensions.Backend, h extensions.Handle, line string)
	// Serve starts something in the sandbox that sends back what it is sent,
	// and returns where Dial finds it. Needed for PowerPorts.
	Serve func(t testing.TB, b extensions.Backend, h extensions.Handle) (service string, port int)
	// Starts counts what the place has been asked to make so far, whether or
	// not it still exists; used to see that a cancelled call starts nothing.
	Starts func(t testing.TB, cfg extensions.Config) int

	// User is a user name the place can run commands as, and what `id -un`
	// or the environment prints for it; empty where it has only its own.
	User string
	// ShortTTL is the shortest deadline the place takes; 0 = 2 s.
	ShortTTL time.Duration
	// Excuse names checks that cannot be run at this place, with the reason;
	// they are skipped with it, also under SANDBOXER_NO_SKIP.
	Excuse map[string]string
	// Serial runs one check at a time.
	Serial bool

	// patience is how long a call may be held up by what must not hold it up;
	// 0 = 15 s. The suite's own test lowers it.
	patience time.Duration
}

func (h Harness) limit() time.Duration {
	if h.patience > 0 {
		return h.patience
	}
	return 15 * time.Second
}
