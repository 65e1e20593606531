//go:build unix

// Package stage lets our own executable, or a test's, start again to build a sandbox's walls: importing it is
// enough. It takes over a process named Name before main; that process never returns. The name stands in argv
// because every stage's environment is empty. Package initd takes over the later stage, the init itself, in
// the same way.
//
// Keep the imports of this package few: Go initializes them, and everything that sorts before them, at each
// start. In particular avoid net, which comes late.
package stage

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Name is argv[0] of our stages; argv[1] is one of the modes, argv[2] the sandbox's id, for people who read
// process lists.
const (
	Name       = "sandboxer-init"
	Keeper     = "sandboxer-keeper" // argv[0] of the stage that is no init
	ModeWalls  = "walls"            // in fresh namespaces: build the walls, continue as the init
	ModeInside = "inside"           // within walls: become the init
	ModePlain  = "plain"            // become the init without walls
	ModeKeep   = "keep"             // outside: remove the cgroups once the init is gone
	ModeNoop   = "noop"             // end at once; measures a start
)

// Descriptors of a stage. All are open from its start, as /dev/null if there is nothing to pass: Go's runtime opens files of
// its own, which must not get these numbers.
const (
	FDConfig = 3 + iota
	FDListener
	FDLease
	FDEnd
	FDReady
	FDExe    // our own executable; walls only
	_        // a socket that holds the host uid while the init lives
	FDMemory // memory.stat of the sandbox's cgroup
	FDSeed   // the workspace while it is writable; the walls put it there
)

// FDInit is the descriptor of the init's process, which a keeper has besides FDConfig.
const FDInit = FDConfig + 1

const maxConfig = 64 << 20

// ExePath is the path that starts a stage. Bubblewrap cannot set argv[0], so the path is a name too.
var ExePath = fmt.Sprintf("/proc/self/fd/%d", FDExe)

func init() {
	switch {
	case Taken(ModeWalls):
		Report(buildWalls()) // becomes ModeInside on success
	case Taken(ModeKeep):
		Report(keep())
	case Taken(ModeNoop):
		Report(nil)
	}
}

// Report tells the side that started us why a stage failed, and ends the stage.
func Report(err error) {
	if err == nil {
		os.Exit(0)
	}
	_, _ = os.NewFile(FDReady, "ready").WriteString(describe(err))
	os.Exit(1)
}

// Taken reports whether this process was started as a stage of the mode.
func Taken(mode string) bool {
	return len(os.Args) == 3 && slices.Contains([]string{Name, Keeper, ExePath}, os.Args[0]) && os.Args[1] == mode
}

// ReadConfig reads one length and that many bytes of JSON, and nothing more.
func ReadConfig(fd int, v any) error {
	in := rawReader(fd)
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxConfig {
		return errors.New("the configuration is too large")
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(in, b); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	return json.Unmarshal(b, v)
}

// WriteConfig writes what ReadConfig reads.
func WriteConfig(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxConfig {
		return errors.New("the configuration is too large")
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}
