package cli

import (
	"bytes"
	"strings"
	"testing"
)

// Help prints the defaults of flags.
func TestHelpTellsNothingOfTheEnvironment(t *testing.T) {
	t.Setenv("SANDBOXER_LEDGER", "postgres://me:hush-hush@127.0.0.1/ledger")
	var out bytes.Buffer
	a := &app{out: &out, err: &out}
	if code := a.run(t.Context(), []string{"--help"}); code != exitOK || out.Len() == 0 {
		t.Errorf("exit %d: %s", code, &out)
	}
	if strings.Contains(out.String(), "hush") {
		t.Errorf("%s", &out)
	}
}
