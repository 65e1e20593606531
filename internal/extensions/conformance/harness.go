package conformance

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Harness is a HarnessFor any kind of test, as the suite itself uses it.
type Harness = HarnessFor[TB]

// HarnessFor is what the suite must know about one extension. New and Config are required. Functions get the test
// of the check that calls them and may fail it or register cleanups with it. T is testing.TB in Go tests.
type HarnessFor[T TB] struct {
	// New returns the extension under test.
	New func(t T) extensions.Extension
	// Config returns the configuration of a fresh place that nothing else uses. Account must be set. Checks
	// add their own credentials if the descriptor declares some.
	Config func(t T) extensions.Config
	// Spec adapts the suite's minimal spec to the place; nil leaves it as the package's Spec builds it.
	Spec func(t T, cfg extensions.Config, spec extensions.Spec) extensions.Spec

	// The hooks below stay nil if the place cannot offer them.

	// Unreachable makes everything behind cfg unreachable until the check ends.
	Unreachable func(t T, cfg extensions.Config)
	// Unauthorized returns cfg with credentials that the place rejects.
	Unauthorized func(t T, cfg extensions.Config) extensions.Config
	// Accepted returns values that the place accepts for these credentials, of which nothing else is given.
	// Required if the descriptor declares alternatives.
	Accepted func(t T, cfg extensions.Config, names []string) map[string]extensions.Secret
	// Exhaust makes the place refuse the next create for lack of room or quota.
	Exhaust func(t T, cfg extensions.Config)
	// NotHere makes the place refuse the returned spec, a change of the given one, for what it does not offer: a
	// limit of the account's plan, an image it does not have, a size.
	NotHere func(t T, cfg extensions.Config, spec extensions.Spec) extensions.Spec
	// Throttle makes the place refuse the next create because it takes fewer calls, and say when to come again.
	Throttle func(t T, cfg extensions.Config)
	// Falter makes a gateway in front of the place answer the next look at a sandbox instead of it.
	Falter func(t T, cfg extensions.Config)
	// LoseAnswer makes the next create succeed but loses its answer.
	LoseAnswer func(t T, cfg extensions.Config)
	// CutExec breaks the connection of the next exec in h once started is closed, which is after its command
	// has printed something. The place is reachable again when the call returns.
	CutExec func(t T, cfg extensions.Config, h extensions.Handle, started <-chan struct{})
	// Vanish makes a sandbox disappear behind the adapter's back.
	Vanish func(t T, cfg extensions.Config, h extensions.Handle)
	// Relabel makes the backend object carry another sandbox's id.
	Relabel func(t T, cfg extensions.Config, h extensions.Handle, id extensions.ID)
	// RelabelSnapshot is Relabel for a snapshot.
	RelabelSnapshot func(t T, cfg extensions.Config, h extensions.SnapshotHandle, id string)
	// Advance lets d pass for the place; nil waits. If it is nil, the suite asks for a few seconds only.
	Advance func(t T, cfg extensions.Config, d time.Duration)
	// Compute makes what runs by itself in a sandbox use so much CPU time; nil starts a program that does.
	Compute func(t T, cfg extensions.Config, h extensions.Handle, d time.Duration)
	// Pages makes the place list so few sandboxes at a time that size of them need a second page; for a place that
	// lists by pages.
	Pages func(t T, cfg extensions.Config) (size int)
	// BreakPages makes the lists of such a place break, each in its own way, until the check ends.
	BreakPages map[string]func(t T, cfg extensions.Config)
	// Settle lets an eventually consistent find or list catch up; nil waits as long as the descriptor says.
	Settle func(t T, cfg extensions.Config)
	// Residue lists what is left at the place: processes, mounts, folders, objects. Once all its sandboxes
	// are torn down, the list is what it was before the first one.
	Residue func(t T, cfg extensions.Config) []string
	// Outside reads everything the place keeps outside its sandboxes that a secret could have reached: file
	// contents, argument lists, logs.
	Outside func(t T, cfg extensions.Config) []string
	// Log makes a process of the sandbox print a line that Logs must show; nil runs a command that prints it.
	Log func(t T, b extensions.Backend, h extensions.Handle, line string)
	// Serve starts an echo service in the sandbox, and returns where Dial finds it. Required for PowerPorts.
	Serve func(t T, b extensions.Backend, h extensions.Handle) (service string, port int)
	// Listen offers what a sandbox of the place can reach where its network is allowed.
	Listen func(t T, cfg extensions.Config) []Listener
	// Knock reports whether a stranger who knows its address reaches the port that Serve opened.
	Knock func(t T, cfg extensions.Config, h extensions.Handle, port int) bool
	// Visit reports whether a request to the address with this header alone reaches the port inside, where it
	// lets something answer if the sandbox is there.
	Visit func(t T, cfg extensions.Config, h extensions.Handle, port int, address string, header extensions.Header) bool
	// OwnEntrypoint changes a spec so that what its image starts with writes "own" to the file ran of the workspace
	// and then runs on.
	OwnEntrypoint func(t T, cfg extensions.Config, spec extensions.Spec) extensions.Spec
	// Desktop reports whether the desktop of a sandbox runs. Required for a place that provides one.
	Desktop func(t T, cfg extensions.Config, h extensions.Handle) bool
	// Starts counts what the place has been asked to create so far, whether or not it still exists. It shows
	// that a canceled call starts nothing, and that no call is repeated behind the engine's back.
	Starts func(t T, cfg extensions.Config) int

	// At returns a fresh place of another declared kind; for an extension with several.
	At func(t T, p extensions.Place) extensions.Config

	// User is a user name the place can run commands as, and what `id -un` or the environment prints for it;
	// empty if it has only its own.
	User string
	// ShortTTL is the shortest deadline the place accepts; 0 = 2 s.
	ShortTTL time.Duration
	// Excuse names checks that cannot run at this place, with the reason for skipping them, even under
	// SANDBOXER_NO_SKIP.
	Excuse map[string]string
	// Serial runs one check at a time.
	Serial bool

	// patience bounds the delay of a call by what must not delay it; 0 = 15 s. The suite's own test lowers
	// it.
	patience time.Duration
}

func (h HarnessFor[T]) limit() time.Duration {
	if h.patience > 0 {
		return h.patience
	}
	return 15 * time.Second
}
