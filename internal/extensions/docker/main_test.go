package docker

import (
	"os"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

func TestMain(m *testing.M) { os.Exit(hosttest.Main(m)) }
