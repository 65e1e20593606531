//go:build unix

// Package stage lets our own executable, or a test's, be started again to
// build a sandbox's walls: importing it is enough. A process whose name is
// Name is taken over before main and never returns. The name stands in argv
// because the environment of every stage is empty. The later stage, the init
// itself, is taken over in the same way by package initd.
//
// What this package imports is kept small, because Go initialises it, and all
// that sorts before it, at each start; in particular not net, which comes late.
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

// Name is argv[0] of our stages; argv[1] is one of the modes, argv[2] the
// sandbox's id, for people who read process lists.
const (
	Name       = "sandboxer-init"
	Keeper     = "sandboxer-keeper" // argv[0] of the one that is no init
	ModeWalls  = "walls"            // in fresh namespaces: build the walls, go on as the init
	ModeInside = "inside"           // within walls: be the init
	ModePlain  = "plain"            // be the init without walls
	ModeKeep   = "keep"             // outside: remove the cgroups when the init is gone
	ModeNoop   = "noop"             // end at once; measures a start
)

// Descriptors of a stage.
const (
	FDConfig = 3 + iota
	FDListener
	FDLease
	FDEnd
	FDReady
	FDExe    // our own executable in sealed memory; walls only
	_        // a socket that holds the host uid while the init lives, may be closed
	FDMemory // memory.stat of the sandbox's cgroup, may be closed
	FDSeed   // the workspace while it can be written, made by the walls
)

// FDInit is the descriptor of the init's process that a keeper has besides FDConfig.
const FDInit = FDConfig + 1

const maxConfig = 64 << 20

// ExePath is where a stage is started from. Bubblewrap cannot set argv[0], so
// it is a name, too.
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

// Report tells the side that started us why a stage failed, and ends it.
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

// ReadConfig reads one length and that many bytes of JSON, and nothing beyond.
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
