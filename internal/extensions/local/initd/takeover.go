//go:build unix

package initd

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

// A process started as an init never reaches main.
func init() {
	if stage.Taken(stage.ModeInside) || stage.Taken(stage.ModePlain) {
		stage.Report(run())
	}
}

func run() error {
	debug.SetTraceback("none")
	debug.SetGCPercent(50)
	runtime.GOMAXPROCS(min(2, runtime.NumCPU()))
	if err := stage.Hide(); err != nil {
		return err
	}
	var cfg Config
	if err := stage.ReadConfig(stage.FDConfig, &cfg); err != nil {
		return err
	}
	unignore()
	return Serve(cfg, Files{
		Listener: os.NewFile(stage.FDListener, "socket"), Lease: os.NewFile(stage.FDLease, "lease"), End: os.NewFile(stage.FDEnd, "end"),
		Commit: os.NewFile(stage.FDConfig, "commit"), Ready: os.NewFile(stage.FDReady, "ready"),
		Memory: os.NewFile(stage.FDMemory, "memory"),
	})
}
