package profile

import (
	"strconv"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/strictyaml"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	day         = 24 * time.Hour
	maxDuration = time.Duration(1<<63 - 1)
)

// Duration is a length of time in the format of ParseDuration.
type Duration time.Duration

// UnmarshalStrict implements strictyaml.Unmarshaler.
func (d *Duration) UnmarshalStrict(n strictyaml.Node) error {
	if n.Kind() != strictyaml.Text {
		return invalid("want a duration such as 90s, 2h or 1d, got %s", n)
	}
	v, err := ParseDuration(n.Literal())
	*d = Duration(v)
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(FormatDuration(time.Duration(d))), nil }

// ParseDuration reads Go's format with optional whole days in front: "90s", "2h30m", "1d", "1d12h". Sign
// and range are Go's, about 292 years. Malformed and larger values are KindInvalid.
func ParseDuration(s string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(s, "-")
	days, tail, hasDays := strings.Cut(rest, "d")
	if !hasDays {
		days, tail = "", rest
	}
	var total time.Duration
	if hasDays {
		n, err := strconv.ParseUint(days, 10, 64)
		switch {
		case days == "" || strings.Trim(days, "0123456789") != "":
			return 0, notDuration(s)
		case err != nil || n > uint64(maxDuration/day):
			return 0, invalid("the duration %s overflows", quoted(s))
		}
		total = time.Duration(n) * day
	}
	if tail != "" || !hasDays {
		if strings.HasPrefix(tail, "-") || strings.HasPrefix(tail, "+") {
			return 0, notDuration(s)
		}
		d, err := time.ParseDuration(tail)
		if err != nil {
			if wellFormed(tail) {
				return 0, invalid("the duration %s overflows", quoted(s))
			}
			return 0, notDuration(s)
		}
		if d > maxDuration-total {
			return 0, invalid("the duration %s overflows", quoted(s))
		}
		total += d
	}
	if negative {
		total = -total
	}
	return total, nil
}

// wellFormed tells too large from malformed, which Go's parser does not: it keeps one digit of every
// number, so that only the format can fail. A lone 0 needs no unit, so that digit must not be 0.
func wellFormed(s string) bool {
	var b strings.Builder
	for i, r := range s {
		switch digit := r >= '0' && r <= '9'; {
		case !digit:
			b.WriteRune(r)
		case i == 0 || s[i-1] < '0' || s[i-1] > '9':
			b.WriteByte('1')
		}
	}
	_, err := time.ParseDuration(b.String())
	return err == nil
}

func notDuration(s string) error {
	return invalid("%s is not a duration", quoted(s)).WithRemedy("write it as in 90s, 2h or 1d")
}

// FormatDuration writes what ParseDuration reads, with whole days and without zero parts: "1d12h",
// "1h30m"; "90s" becomes "1m30s".
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	if d < 0 {
		if d == -maxDuration-1 {
			return d.String()
		}
		return "-" + FormatDuration(-d)
	}
	var b strings.Builder
	if n := d / day; n > 0 {
		b.WriteString(strconv.FormatInt(int64(n), 10) + "d")
		d -= n * day
	}
	if n := d / time.Hour; n > 0 {
		b.WriteString(strconv.FormatInt(int64(n), 10) + "h")
		d -= n * time.Hour
	}
	if n := d / time.Minute; n > 0 {
		b.WriteString(strconv.FormatInt(int64(n), 10) + "m")
		d -= n * time.Minute
	}
	if d > 0 {
		b.WriteString(d.String())
	}
	return b.String()
}

func invalid(format string, args ...any) *extensions.Error {
	return extensions.Errorf(extensions.KindInvalid, format, args...)
}

// quoted shows a user's text in a message: one line, shortened, without terminal control characters.
func quoted(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strconv.Quote(s)
}
