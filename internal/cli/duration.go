package cli

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// durationValue is a flag that takes durations as profiles write them: "90s", "2h", "1d". The flag's help
// says what zero means.
type durationValue time.Duration

func (t *durationValue) String() string {
	if *t == 0 {
		return ""
	}
	return time.Duration(*t).String()
}

func (t *durationValue) Type() string { return "duration" }

func (t *durationValue) Set(s string) error {
	d, err := engine.ParseDuration(s)
	if err != nil {
		return err
	}
	*t = durationValue(d)
	return nil
}
