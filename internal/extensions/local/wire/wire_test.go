package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestFramesArriveInOrderAndWhole(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	big := bytes.Repeat([]byte("0123456789"), ChunkSize/4)
	if _, err := w.Stream(FrameOutput).Write(big); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Frame(FrameInputEnd, nil), w.JSON(FrameResult, Result{Exit: 3, Code: CodeTimeout})); err != nil {
		t.Fatal(err)
	}
	r := NewReader(&buf)
	var got []byte
	for len(got) < len(big) {
		kind, p, err := r.Next()
		if err != nil || kind != FrameOutput || len(p) > ChunkSize {
			t.Fatalf("%c, %d bytes, %v", kind, len(p), err)
		}
		got = append(got, p...)
	}
	if !bytes.Equal(got, big) {
		t.Error("the stream was changed")
	}
	for _, want := range []byte{FrameInputEnd, FrameResult} {
		if kind, _, err := r.Next(); err != nil || kind != want {
			t.Errorf("%c, %v; want %c", kind, err, want)
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
}

func TestAFrameAboveTheBoundIsRefusedOnBothSides(t *testing.T) {
	t.Parallel()
	if err := NewWriter(io.Discard).Frame(FrameInput, make([]byte, MaxPayload+1)); err == nil {
		t.Error("it was written")
	}
	if _, _, err := NewReader(bytes.NewReader([]byte{FrameInput, 0xff, 0xff, 0xff, 0xff})).Next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it was read: %v", err)
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte{FrameInput, 0, 0, 0, 2, 'a', 'b'})
	f.Add([]byte{FrameResult, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		for {
			if _, _, err := r.Next(); err != nil {
				return
			}
		}
	})
}
