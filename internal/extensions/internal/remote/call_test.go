package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

func wantRemedy(t testing.TB, err error) {
	t.Helper()
	wantKind(t, err, extensions.KindUnsupported)
	if extensions.RemedyOf(err) == "" {
		t.Errorf("no remedy: %v", err)
	}
}

func TestCallAnswers(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	var answer struct{ Name, Payload, Locale, Path string }
	var lines []string
	err := c.Call(within(t, time.Minute), Call{
		Script: `
echo stray; echo stray >&2
progress one
printf 'unfinished ' >&2; progress "two  words"
printf '%s\n' "{\"name\":$(json_string "$name"),\"payload\":$(json_string),\"locale\":$(json_string "$LC_ALL"),\"path\":$(json_string "$PATH")}" | answer
echo more stray`,
		Vars:    map[string]string{"name": "it's \"$HOME\" `id` \\ \n é", "empty": ""},
		Payload: strings.NewReader("what came\n"),
		Progress: func(line string) {
			lines = append(lines, line)
		},
	}, &answer)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Name != "it's \"$HOME\" `id` \\ \n é" || answer.Payload != "what came" || answer.Locale != "C" ||
		!strings.Contains(answer.Path, "/usr/local/sbin") {
		t.Errorf("%+v", answer)
	}
	if !slices.Equal(lines, []string{"one", "two  words"}) {
		t.Errorf("progress %q", lines)
	}
}

func TestCallTakesNoOtherAnswer(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	for script, says := range map[string]string{
		"":                                       "0 answers",
		"echo it broke >&2; exit 7":              "exit code 7 and 0 answers instead of one; it said: it broke",
		"answer '{\"n\":1}'; answer '{\"n\":1}'": "2 answers",
		"answer '{\"n\":1}'; exit 3":             "exit code 3",
		"answer '{\"n\":1,\"m\":2}'":             "unknown field",
		"answer '{\"n\":1} {\"n\":2}'":           "more than one document",
		"answer '{\"n\":\"x\"}'":                 "cannot unmarshal",
		"answer '{\"n\":'":                       "unexpected EOF",
		"answer ''":                              "EOF",
		"answer '[1]'":                           "cannot unmarshal",
		"answer '{\"error\":{\"kind\":1}}'":      "cannot unmarshal",
		"if":                                     "0 answers",
		"printf '\\033[31mred\\007' >&2; exit 1": "red\ufffd",
	} {
		var answer struct{ N int }
		err := c.Call(within(t, time.Minute), Call{Script: script}, &answer)
		wantKind(t, err, extensions.KindInternal)
		if !strings.Contains(err.Error(), says) || !MayHaveStarted(err) {
			t.Errorf("%s: %v (want %q)", script, err, says)
		}
	}
	if err := c.Call(within(t, time.Minute), Call{Script: "answer '[1]'"}, nil); err != nil {
		t.Error(err)
	}
	var list []int
	if err := c.Call(within(t, time.Minute), Call{Script: "answer '[1,2]'"}, &list); err != nil || len(list) != 2 {
		t.Error(list, err)
	}
}

func TestCallFails(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	err := c.Call(within(t, time.Minute), Call{Script: `fail conflict "it's \"busy\" $(printf '\033[2J')" 'wait a
while'; echo not reached`}, nil)
	wantKind(t, err, extensions.KindConflict)
	if err.Error() != "it's \"busy\" " || extensions.RemedyOf(err) != "wait a while" || !MayHaveStarted(err) {
		t.Errorf("%q, remedy %q", err, extensions.RemedyOf(err))
	}
	err = c.Call(within(t, time.Minute), Call{Script: `fail made_up something`}, nil)
	wantKind(t, err, extensions.KindInternal)
	if !strings.Contains(err.Error(), `something (of the unknown kind "made_up")`) {
		t.Error(err)
	}
}

func TestCallBoundsTheAnswer(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	doc := `"` + strings.Repeat("x", 999_998) + `"`
	var answer string
	call := Call{Script: "cat | answer", Payload: strings.NewReader(doc), MaxAnswer: 1_000_000}
	if err := c.Call(within(t, time.Minute), call, &answer); err != nil || len(answer) != 999_998 {
		t.Fatal(len(answer), err)
	}
	call.Payload, call.MaxAnswer = strings.NewReader(doc), 999_999
	err := c.Call(within(t, time.Minute), call, &answer)
	wantKind(t, err, extensions.KindIndeterminate)
	if !errors.Is(err, errAnswer) {
		t.Error(err)
	}
}

func TestVarsAreChecked(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"": "x", "1a": "x", "a-b": "x", "a b": "x", "é": "x", "_sbx_t": "x", "a": "s3cret\x00"} {
		_, err := framing{vars: map[string]string{name: value}}.encode("m")
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q=%q: %v", name, value, err)
		}
	}
	if _, err := (framing{script: "a\x00"}).encode("m"); err == nil {
		t.Error("a script with NUL")
	}
}

// The mark is never in what is sent, so nothing that shows the script shows it.
func TestMarkIsNotInTheScript(t *testing.T) {
	t.Parallel()
	mark := newMark()
	head, err := framing{script: "set -x", call: true}.encode(mark)
	if err != nil || bytes.Contains(head, []byte(mark)) {
		t.Error(err, string(head))
	}
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	if err := c.Call(within(t, time.Minute), Call{Script: "set -x; progress a; answer 1"}, nil); err != nil {
		t.Error(err)
	}
}

// json_string and Quote carry any bytes through each shell.
func TestJSONStringInAnySh(t *testing.T) {
	t.Parallel()
	texts := []string{"", "plain", "\n", "a\n\nb\n", `"\`, "\t\r\b\f\x01\x1f\x7f", "é€😀", "\xff\xc3", "-n", "-e x", "%s\\n", "$(id)`id`${x}",
		"'", "''", "a'b'", " ", "*",
		strings.Repeat("line \"q\"\n", 3000), strings.Repeat("line\n", 1000), strings.Repeat("line\n", 3000) + "end"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		b := make([]byte, random.IntN(60))
		for i := range b {
			b[i] = byte(1 + random.IntN(255))
		}
		texts = append(texts, string(b))
	}
	var script strings.Builder
	script.WriteString("printf '['\n")
	for i, text := range texts {
		if i > 0 {
			script.WriteString("printf ','\n")
		}
		fmt.Fprintf(&script, "json_string %s\nprintf ','\nprintf '%%s\\n' %s | json_string\n", shtext.Quote(text), shtext.Quote(text))
	}
	script.WriteString("printf ']'\n")
	for _, shell := range loginShells[:3] {
		t.Run(strings.ReplaceAll(shell, " ", "-"), func(t *testing.T) {
			t.Parallel()
			args := shellArgs(t, shell)
			cmd := exec.CommandContext(within(t, time.Minute), args[0], args[1:]...)
			cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
			cmd.Stdin = strings.NewReader(preamble + script.String())
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			if err := json.Unmarshal(out, &got); err != nil || len(got) != 2*len(texts) {
				t.Fatalf("%v in %q", err, out)
			}
			for i, text := range texts {
				want := toJSON(t, text)
				if got[2*i] != want || got[2*i+1] != want {
					t.Errorf("%q became %q and, from stdin, %q", text, got[2*i], got[2*i+1])
				}
			}
		})
	}
}

// toJSON is text as a JSON reader sees it: what is not UTF-8 is replaced.
func toJSON(t *testing.T, text string) (out string) {
	t.Helper()
	b, err := json.Marshal(text)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func TestPayloadThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	broken := errors.New("disk on fire")
	err := c.Call(within(t, time.Minute), Call{Script: "cat >/dev/null; answer 1",
		Payload: io.MultiReader(strings.NewReader("x"), failingReader{broken})}, nil)
	wantKind(t, err, extensions.KindIndeterminate)
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

// A script that reads nothing of a long payload still ends, and ends the copy.
func TestPayloadNobodyReads(t *testing.T) {
	t.Parallel()
	c := open(t, hosttest.SSHD(t).Host(), Options{})
	endless := readerFunc(func(p []byte) (int, error) { return len(p), nil })
	if err := c.Call(within(t, time.Minute), Call{Script: "answer 1", Payload: endless}, nil); err != nil {
		t.Error(err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestCallCancelled(t *testing.T) {
	t.Parallel()
	s := hosttest.SSHD(t)
	c := open(t, s.Host(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := c.Call(ctx, Call{ // it returns although the script waits
		Script:   `progress go; until [ -e "$HOME/on" ]; do sleep 0.1; done; echo here >"$HOME/late"; progress late; answer 1`,
		Progress: func(string) { cancel() },
	}, nil)
	wantKind(t, err, extensions.KindIndeterminate)
	if err := os.WriteFile(filepath.Join(s.HomeDir, "on"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if !errors.Is(err, context.Canceled) || !MayHaveStarted(err) || !strings.Contains(err.Error(), "was started") {
		t.Error(err)
	}
	eventually(t, "the script went on", fileExists(s.HomeDir+"/late"))

	short, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	err = c.Call(short, Call{Script: "sleep 30; answer 1"}, nil)
	wantKind(t, err, extensions.KindTimeout)
	err = c.Call(ctx, Call{Script: "answer 1"}, nil)
	wantKind(t, err, extensions.KindInterrupted)
	if MayHaveStarted(err) {
		t.Error(err)
	}
}
