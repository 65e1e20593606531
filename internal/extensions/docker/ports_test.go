package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

// streamed is what an engine sends of one stream of a command.
func streamed(from stdcopy.StdType, text string) []byte {
	head := [8]byte{byte(from)}
	binary.BigEndian.PutUint32(head[4:], uint32(len(text)))
	return append(head[:], text...)
}

// An engine copies a command's two streams side by side: what a port says first may come before the word that it is connected.
func TestAPortThatSpeaksFirstIsHeardInEitherOrder(t *testing.T) {
	t.Parallel()
	word, first, last := streamed(stdcopy.Stderr, "\x1enonceconnected\x1e"), streamed(stdcopy.Stdout, "220 "), streamed(stdcopy.Stdout, "ready")
	for name, sent := range map[string][][]byte{
		"the word first": {word, first, last}, "the port first": {first, word, last}, "the word last": {first, last, word},
	} {
		near, far := net.Pipe()
		r := &relayed{Conn: near, far: far, at: client.ExecAttachResult{HijackedResponse: client.HijackedResponse{
			Reader: bufio.NewReader(bytes.NewReader(bytes.Join(sent, nil)))}}}
		said := make(chan string, 1)
		done := make(chan struct{})
		go func() { defer close(done); r.receive("nonce", said) }()
		if got := <-said; got != "connected" {
			t.Errorf("%s: %q", name, got)
		}
		if got, err := io.ReadAll(near); err != nil || string(got) != "220 ready" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		<-done
	}
}

// What never says that it is connected is not kept without end.
func TestARelayThatNeverConnectsEnds(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	flood := io.MultiReader(bytes.NewReader(streamed(stdcopy.Stdout, strings.Repeat("x", earliest))), bytes.NewReader(streamed(stdcopy.Stdout, "y")))
	r := &relayed{Conn: near, far: far, at: client.ExecAttachResult{HijackedResponse: client.HijackedResponse{Reader: bufio.NewReader(flood)}}}
	said := make(chan string, 1)
	r.receive("nonce", said)
	if word, ok := <-said; ok {
		t.Errorf("%q", word)
	}
}
