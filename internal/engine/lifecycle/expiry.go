package lifecycle

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// latest is the last instant that ledgers and JSON can hold.
var latest = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// ExpiresAt returns created + ttl. A ttl that is not positive, or ends after the year 9999, is
// KindInvalid.
func ExpiresAt(created time.Time, ttl time.Duration) (time.Time, error) {
	if ttl <= 0 {
		return time.Time{}, extensions.Errorf(extensions.KindInvalid, "the ttl %s is not positive", ttl).
			WithRemedy("give a positive ttl, such as 2h")
	}
	end := created.Add(ttl) // a Duration is at most 292 years: Add cannot wrap
	if end.Before(created) || end.After(latest) {
		return time.Time{}, extensions.Errorf(extensions.KindInvalid, "the ttl %s ends after the year 9999", ttl).
			WithRemedy("give a shorter ttl")
	}
	return end, nil
}

// Within checks a ttl against a maximum, which also counts from creation; 0 means no maximum.
func Within(ttl, limit time.Duration) error {
	if limit > 0 && ttl > limit {
		return extensions.Errorf(extensions.KindInvalid, "the ttl %s is above the maximum %s, which counts from creation", ttl, limit).
			WithRemedy("give a ttl of at most %s, or use a profile with a higher ttl.max", limit)
	}
	return nil
}

// Retarget returns the new end, created + now, after the wanted ttl changed from before to now. It keeps
// an extension that others made meanwhile, unless the ttl shrank: then the user wants an earlier end. An
// unchanged ttl leaves the end unchanged. limit is the profile's maximum from creation, 0 for none;
// exceeding it is KindInvalid.
func Retarget(created, current time.Time, before, now, limit time.Duration) (time.Time, error) {
	target, err := ExpiresAt(created, now)
	if err != nil {
		return time.Time{}, err
	}
	if now == before {
		return current, nil
	}
	if err := Within(now, limit); err != nil {
		return time.Time{}, err
	}
	if now > before && current.After(target) {
		return current, nil
	}
	return target, nil
}

// Overdue reports whether the deadline has passed. A sandbox without one is never overdue.
func Overdue(now, expires time.Time) bool { return !expires.IsZero() && !now.Before(expires) }
