package docker

import (
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

func TestProgramsArePOSIX(t *testing.T) {
	t.Parallel()
	shtexttest.POSIX(t, shtexttest.Programs(t, scripts))
}
