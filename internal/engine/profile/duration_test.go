package profile_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/profile"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestDurationsHaveDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2h": 2 * time.Hour, "1d": 24 * time.Hour, "1d12h": 36 * time.Hour, "0": 0, "0s": 0, "1.5h": 90 * time.Minute,
		"-1d": -24 * time.Hour, "-1d1h": -25 * time.Hour, "2h30m": 150 * time.Minute, "106751d": 106751 * 24 * time.Hour,
	} {
		got, err := profile.ParseDuration(text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestDurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "is not a duration", "d": "is not a duration", "1": "is not a duration", "15": "is not a duration", "1w": "is not a duration",
		"1.5d": "is not a duration",
		"1h1d": "is not a duration", "1d1d": "is not a duration", "--1d": "is not a duration", "1d-1h": "is not a duration",
		"1d+1h": "is not a duration",
		" 1h":   "is not a duration", "1h\n": "is not a duration", "+1d": "is not a duration", "1h; rm -rf /": "is not a duration",
		"1h\x00":  "is not a duration",
		"106752d": "overflows", "99999999999999999999d": "overflows", "106751d24h": "overflows", "9999999999h": "overflows",
		"99999999999999999999h": "overflows",
	} {
		_, err := profile.ParseDuration(text)
		if err == nil || !strings.Contains(err.Error(), want) || !extensions.IsKind(err, extensions.KindInvalid) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q: the message is not one clean line: %q", text, err)
		}
	}
}

func TestFormatDurationIsReadBack(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 90 * time.Second: "1m30s", 2 * time.Hour: "2h", 36 * time.Hour: "1d12h", -24 * time.Hour: "-1d", 1500 * time.Millisecond: "1.5s",
	} {
		if got := profile.FormatDuration(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(math.MinInt64+1, math.MaxInt64).Draw(t, "d"))
		back, err := profile.ParseDuration(profile.FormatDuration(d))
		if err != nil || back != d {
			t.Fatalf("%d -> %s -> %d, %v", d, profile.FormatDuration(d), back, err)
		}
	})
}
