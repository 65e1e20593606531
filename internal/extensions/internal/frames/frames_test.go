package frames

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

const (
	output   = 'o'
	input    = 'i'
	inputEnd = 'e'
	result   = 'x'
)

func TestFramesArriveInOrderAndWhole(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	big := bytes.Repeat([]byte("0123456789"), ChunkSize/4)
	if _, err := w.Stream(output).Write(big); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Frame(inputEnd, nil), w.JSON(result, map[string]int{"exit": 3})); err != nil {
		t.Fatal(err)
	}
	r := NewReader(&buf)
	var got []byte
	for len(got) < len(big) {
		kind, p, err := r.Next()
		if err != nil || kind != output || len(p) > ChunkSize {
			t.Fatalf("%c, %d bytes, %v", kind, len(p), err)
		}
		got = append(got, p...)
	}
	if !bytes.Equal(got, big) {
		t.Error("the stream was changed")
	}
	for _, want := range []byte{inputEnd, result} {
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
	if err := NewWriter(io.Discard).Frame(input, make([]byte, MaxPayload+1)); err == nil {
		t.Error("it was written")
	}
	if _, _, err := NewReader(bytes.NewReader([]byte{input, 0xff, 0xff, 0xff, 0xff})).Next(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it was read: %v", err)
	}
}

func FuzzNext(f *testing.F) {
	f.Add([]byte{input, 0, 0, 0, 2, 'a', 'b'})
	f.Add([]byte{result, 0, 0, 0, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		for {
			if _, _, err := r.Next(); err != nil {
				return
			}
		}
	})
}
