//go:build unix

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/local/stage"
)

// start runs a program with an empty environment and reaps it when it ends. That may be long after, or never
// if we end first.
func start(path string, argv []string, files []*os.File, sys *syscall.SysProcAttr) (int, error) {
	p, err := os.StartProcess(path, argv, &os.ProcAttr{Env: []string{}, Files: files, Sys: sys})
	if err != nil {
		return 0, err
	}
	go func() { _, _ = p.Wait() }()
	return p.Pid, nil
}

// hand gives the stages their configuration, waits until the init is up and commits it. The init ends by
// itself if we die before that.
func (p *pipes) hand(ctx context.Context, configs ...any) error {
	stop := context.AfterFunc(ctx, func() { _ = p.configW.Close(); _ = p.readyR.Close() })
	defer stop()
	var err error
	for _, c := range configs {
		if err == nil {
			err = stage.WriteConfig(p.configW, c)
		}
	}
	if err := p.reason(ctx, err); err != nil {
		return err
	}
	if _, err := p.configW.Write([]byte{1}); err != nil {
		return fmt.Errorf("committing the init: %w", err)
	}
	return nil
}

// reason reads the stages' report: nil once the init is ready, else the step that failed. err says why
// handing over the configuration failed, if it did.
func (p *pipes) reason(ctx context.Context, err error) error {
	report, readErr := io.ReadAll(io.LimitReader(p.readyR, 64<<10))
	if string(report) == "ready" && err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var f stage.Failure
	if json.Unmarshal(report, &f) == nil && f.Step != "" {
		return &f
	}
	if readErr != nil || err == nil {
		err = errors.Join(err, readErr, fmt.Errorf("the init ended at its start (%q)", extensions.Clean(string(report), 200)))
	}
	return err
}
