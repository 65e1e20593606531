package provider

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

func TestAProviderEndsWithTheProcessThatStartedIt(t *testing.T) {
	t.Parallel()
	var parent atomic.Int64
	parent.Store(7)
	ended := make(chan struct{})
	go endWithParent(t.Context(), func() int { return int(parent.Load()) }, time.Millisecond, 30*time.Millisecond, func() { close(ended) })
	select {
	case <-ended:
		t.Fatal("it ended under a living parent")
	case <-time.After(50 * time.Millisecond):
	}
	parent.Store(1)
	gone := time.Now()
	<-ended
	if grace := time.Since(gone); grace < 30*time.Millisecond {
		t.Errorf("what was under way got only %s", grace)
	}
}

func TestAProviderThatIsClosedWaitsForNoParent(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	back := make(chan struct{})
	go func() {
		endWithParent(ctx, func() int { return 7 }, time.Hour, time.Hour, func() { t.Error("it ended") })
		close(back)
	}()
	cancel()
	<-back
}
