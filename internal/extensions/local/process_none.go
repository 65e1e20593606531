//go:build !unix

package local

import (
	"context"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// No sandbox is ever made on this system; what a record says is not alive here.

func bootTime() time.Time { return time.Time{} }

func (*process) alive() bool { return false }

func (*process) serves(extensions.ID) bool { return false }

func (*process) rebooted() bool { return false }

func (*process) kill(context.Context) error { return nil }
