package cli

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// durationValue is a flag in the words of profiles: "90s", "2h", "1d"; its zero
// is what the flag's help says of it.
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
