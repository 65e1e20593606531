package cli

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// ttlValue is a flag in the words of profiles: "90s", "2h", "1d".
type ttlValue time.Duration

func (t *ttlValue) String() string {
	if *t == 0 {
		return ""
	}
	return time.Duration(*t).String()
}

func (t *ttlValue) Type() string { return "duration" }

func (t *ttlValue) Set(s string) error {
	d, err := engine.ParseDuration(s)
	if err != nil {
		return err
	}
	*t = ttlValue(d)
	return nil
}
