package remote

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pieces cuts text anywhere.
func pieces(random *rand.Rand, text string) (out [][]byte) {
	for len(text) > 0 {
		n := 1 + random.IntN(min(len(text), 1+random.IntN(40)))
		out = append(out, []byte(text[:n]))
		text = text[n:]
	}
	return out
}

// However the streams are cut, what is read is the same.
func TestStreamsMayBeCutAnywhere(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	mark := newMark()
	stdout := "motd " + mark[:9] + "\n" + mark + " 1234\nstray " + mark + " answe\n\n" + mark + " answer\n{\"a\":\n\"" + mark[:20] +
		" end\n\"}\n" + mark + " end\nmore"
	stderr := "noise\n" + mark + "\nwarning\n" + mark + " one\nhalf " + mark + " two\n\xff" + strings.Repeat("y", 9000) + "\nlast"
	for range 500 {
		var lines []string
		pid := 0
		answer, errs := newAnswerReader(mark, 1000), newStderrReader(mark, func(l string) { lines = append(lines, l) })
		out := newOpening(mark, answer.write, func(p int) { pid = p })
		err := newOpening(mark, errs.write, func(int) {})
		for _, p := range pieces(random, stdout) {
			if e := out.write(p); e != nil {
				t.Fatal(e)
			}
			clear(p) // what was written may be overwritten
		}
		for _, p := range pieces(random, stderr) {
			if e := err.write(p); e != nil {
				t.Fatal(e)
			}
			clear(p)
		}
		if got := answer.doc.String(); pid != 1234 || answer.answers != 1 || got != "{\"a\":\n\""+mark[:20]+" end\n\"}" {
			t.Fatalf("pid %d, %d answers, %q", pid, answer.answers, got)
		}
		if !slices.Equal(lines, []string{"one", "two"}) || errs.text() != "… | last" || out.seen() != "motd "+mark[:9]+"\n" {
			t.Fatalf("progress %q, text %q, before %q", lines, errs.text(), out.seen())
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var all []byte
	var kept tail
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		p := bytes.Repeat([]byte{byte('a' + random.IntN(26))}, random.IntN(3*maxTail/2))
		all = append(all, p...)
		kept.write(p)
		if kept.text() != string(all[max(0, len(all)-maxTail):]) || cap(kept.b) > 8*maxTail {
			t.Fatalf("%d bytes kept of %d", len(kept.text()), len(all))
		}
	}
}

func TestNoiseIsBounded(t *testing.T) {
	t.Parallel()
	for name, noise := range map[string]string{"plain": strings.Repeat("x", 1000), "mark without end": strings.Repeat("sbx-mark", 125)} {
		o := newOpening("sbx-mark", func([]byte) error { return nil }, func(int) {})
		var err error
		n := 0
		for ; err == nil && n < 2*maxNoise; n += len(noise) {
			err = o.write([]byte(noise))
		}
		if err == nil {
			t.Errorf("%s: %d bytes and no end", name, n)
		}
	}
}
