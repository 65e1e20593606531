package lease

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestALeaseIsReadAsWritten(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "lease"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := Read(f); !errors.Is(err, ErrTorn) {
		t.Errorf("an empty lease: %v", err)
	}
	for _, want := range []time.Time{time.UnixMicro(1_800_000_000_123_456), time.UnixMicro(5), time.UnixMicro(1_900_000_000_000_000)} {
		if err := Write(f, want); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(f); err != nil || !got.Equal(want) {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	if _, err := f.WriteAt([]byte("9"), 12); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(f); !errors.Is(err, ErrTorn) {
		t.Errorf("a changed digit: %v", err)
	}
}

func TestATombstoneIsReadAsWritten(t *testing.T) {
	t.Parallel()
	if _, ok := ParseTombstone(nil); ok {
		t.Error("an empty tombstone counts")
	}
	path := filepath.Join(t.TempDir(), "end")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Tombstone{EndedAt: time.UnixMicro(1_800_000_000_000_001).UTC(), Reason: ReasonExpired}
	if err := errors.Join(WriteTombstone(f, want), f.Close()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if got, ok := ParseTombstone(raw); err != nil || !ok || got != want {
		t.Errorf("%+v, %t, %v", got, ok, err)
	}
}
