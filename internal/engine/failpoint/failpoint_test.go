package failpoint

import (
	"context"
	"testing"
)

func TestUnhookedNothingHappens(t *testing.T) {
	t.Parallel()
	if err := Hit(context.Background(), "any"); err != nil {
		t.Error(err)
	}
}

func BenchmarkDisarmed(b *testing.B) {
	ctx := context.Background()
	for b.Loop() {
		if err := Hit(ctx, "any"); err != nil {
			b.Fatal(err)
		}
	}
}
