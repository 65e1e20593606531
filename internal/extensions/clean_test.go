package extensions

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCleanRemovesTerminalSequencesWhole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain [31m text": "plain [31m text",
		"\x1b[31mred\x1b[0m and \x1b[1;38;5;196mbold\x1b[m": "red and bold",
		"\x1b[2J\x1b[H\x1b[?25lcleared\x1b[K":               "cleared",
		"\x1b]0;a title\aafter":                             "after",
		"\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\!":        "link!",
		"\u009b31mred\u009d0;title\u009cafter":              "redafter",
		"\x1bP1$r0m\x1b\\dcs \x1b_apc\x1b\\\x1b^pm\x1b\\":   "dcs ",
		"\x1b(Bcharset \x1b7saved\x1b8 \x1bc":               "charset saved ",
		"cut off \x1b":                                      "cut off ",
		"cut off \x1b[3":                                    "cut off ",
		"\x1b]0;never ends":                                 "0;never ends",
		"\x1b]0;next\nline\a":                               "0;next line\ufffd",
		"\x1b\x1b[31m[32mtwice":                             "[32mtwice",
		"\x1b]0;a\x1b[31mb\aafter":                          "0;ab\ufffdafter",
		"bell\a and null\x00":                               "bell\ufffd and null\ufffd",
		"é\x1b[31m日本\x1b[0m\xff":                            "é日本\ufffd",
	} {
		if got := Clean(text, 1000); got != want {
			t.Errorf("%q is cleaned to %q, want %q", text, got, want)
		}
	}
	if got := Clean("\x1b[31mabcdef", 3); got != "abc…" {
		t.Errorf("the limit counts what is removed: %q", got)
	}
}

// FuzzClean: nothing a terminal would take for an order, no more than the limit,
// nothing twice, and text without controls is as it was.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[31mred\x1b[0m", "\x1b]0;t\a", "\u009b1m", "\x1b", "\x1b\x1b[\x1b]", "\x1bP\x1b\\",
		"\xff\x1b[", "a\r\nb", "\u202e"} {
		f.Add(s, 40)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(max(limit, 0), 1<<16)
		got := Clean(text, limit)
		if n := utf8.RuneCountInString(got); n > limit+1 || !utf8.ValidString(got) {
			t.Errorf("%q: %d runes of %d", got, n, limit)
		}
		for _, r := range got {
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				t.Errorf("%q is cleaned to %q", text, got)
			}
		}
		if again := Clean(got, limit+1); again != got {
			t.Errorf("cleaned again, %q is %q", got, again)
		}
		if !strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r >= 0x7f }) && StripEscapes(text) != text {
			t.Errorf("%q became %q", text, StripEscapes(text))
		}
	})
}

func TestTheLastLinesAreWhole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 30)
	for text, want := range map[string]string{
		"":                              "",
		"one\n\n two \r\nthree\n":       "one | two | three",
		"first line\nsecond\nthird one": "… | second | third one",
		"…\nsecond\nthird one":          "… | second | third one",
		"…\na\nb\nthird one":            "… | a | b | third one",
		"kept\n" + long:                 "… " + long[:20],
		long:                            "… " + long[:20],
		"äöü\näöüäöüäöü\näöüäöü":                  "… | äöüäöüäöü | äöüäöü",
		"gone\n\x1b[31mred\x1b[0m\nlines of \x00": "… | red | lines of \ufffd",
	} {
		if got := LastLines(text, 20); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
