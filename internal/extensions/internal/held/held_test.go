package held_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/held"
)

// However many ask at once, one fetches, and the others get what it did.
func TestOneFetchesForAll(t *testing.T) {
	t.Parallel()
	v := held.New[int]()
	var fetched atomic.Int32
	fetch := func(context.Context) (int, time.Time, error) {
		time.Sleep(10 * time.Millisecond)
		return int(fetched.Add(1)), time.Now().Add(time.Hour), nil
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got, err := v.Get(t.Context(), fetch); got != 1 || err != nil {
				t.Errorf("%d, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := fetched.Load(); n != 1 {
		t.Errorf("fetched %d times", n)
	}
}

// What is over, or was not fetched, is fetched by the next; who waits for another's fetch waits as long as its context lasts.
func TestWhatIsOverIsFetchedAgain(t *testing.T) {
	t.Parallel()
	v := held.New[string]()
	answer := func(text string, long time.Duration, err error) func(context.Context) (string, time.Time, error) {
		return func(context.Context) (string, time.Time, error) { return text, time.Now().Add(long), err }
	}
	broken := errors.New("broken")
	for i, c := range []struct {
		fetch func(context.Context) (string, time.Time, error)
		want  string
		err   error
	}{
		{answer("", time.Hour, broken), "", broken},
		{answer("short", -time.Second, nil), "short", nil},
		{answer("long", time.Hour, nil), "long", nil},
		{answer("not asked", time.Hour, broken), "long", nil},
	} {
		if got, err := v.Get(t.Context(), c.fetch); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
	slow, begun, end := held.New[string](), make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		_, _ = slow.Get(t.Context(), func(context.Context) (string, time.Time, error) { close(begun); <-end; return "", time.Time{}, nil })
	})
	<-begun
	left, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := slow.Get(left, answer("x", time.Hour, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(end)
	first.Wait()
}
