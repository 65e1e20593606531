//go:build unix

// Package stage lets our own executable, or a test's, be started again as the
// init of a sandbox: importing it is enough. A process whose name is Name is
// taken over before main and never returns. The name stands in argv because
// the environment of every stage is empty.
//
// The package and what it imports are kept few, since they are initialised
// before the takeover at each start.
package stage

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/initd"
)

// Name is argv[0] of our stages; argv[1] is one of the modes, argv[2] the
// sandbox's id, for people who read process lists.
const (
	Name       = "sandboxer-init"
	ModeWalls  = "walls"  // in fresh namespaces: build the walls, go on as the init
	ModeInside = "inside" // within walls: be the init
	ModePlain  = "plain"  // be the init without walls
	ModeNoop   = "noop"   // end at once; measures a start
)

// Descriptors of a stage.
const (
	FDConfig = 3 + iota
	FDListener
	FDLease
	FDEnd
	FDReady
	FDExe  // our own executable in sealed memory; walls only
	FDHold // a socket that holds the host uid while the init lives, may be closed
	FDSeed // the workspace while it can be written, made by the walls
)

const maxConfig = 64 << 20

// exePath is how bubblewrap, which cannot set argv[0], starts a stage.
var exePath = fmt.Sprintf("/proc/self/fd/%d", FDExe)

func init() {
	if len(os.Args) != 3 || os.Args[0] != Name && os.Args[0] != exePath {
		return
	}
	err := errors.New("unknown mode")
	switch os.Args[1] {
	case ModeWalls:
		err = buildWalls() // becomes ModeInside on success
	case ModeInside, ModePlain:
		err = beInit()
	case ModeNoop:
		err = nil
	}
	if err != nil {
		_, _ = os.NewFile(FDReady, "ready").WriteString(describe(err))
		os.Exit(1)
	}
	os.Exit(0)
}

func beInit() error {
	debug.SetTraceback("none")
	debug.SetGCPercent(50)
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	if err := hide(); err != nil {
		return err
	}
	var cfg initd.Config
	if err := ReadConfig(FDConfig, &cfg); err != nil {
		return err
	}
	return initd.Serve(cfg, initd.Files{
		Listener: os.NewFile(FDListener, "socket"), Lease: os.NewFile(FDLease, "lease"), End: os.NewFile(FDEnd, "end"),
		Commit: os.NewFile(FDConfig, "commit"), Ready: os.NewFile(FDReady, "ready"),
	})
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
