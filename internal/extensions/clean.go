package extensions

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text of a remote side safe for a message: at most limit runes,
// terminal sequences removed whole, other control characters (which would forge
// lines) replaced.
func Clean(text string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range StripEscapes(text) {
		if n == limit {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\t':
			r = ' '
		case r < 0x20, r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			r = '\ufffd'
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// LastLines returns the end of a remote side's output as one clean line, with " | "
// between its lines: as many whole lines as fit limit runes, and "…" in place of
// earlier ones. If the last line alone is longer, it returns the end of that line.
func LastLines(text string, limit int) string {
	var lines []string
	for _, l := range strings.FieldsFunc(StripEscapes(strings.ToValidUTF8(text, "\ufffd")),
		func(r rune) bool { return r == '\n' || r == '\r' }) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	const between = " | "
	from, left := len(lines), limit
	for from > 0 && utf8.RuneCountInString(lines[from-1]) <= left {
		from--
		left -= utf8.RuneCountInString(lines[from]) + len(between)
	}
	kept := lines[from:]
	switch {
	case from > 0 && len(kept) == 0:
		last := []rune(lines[from-1])
		return "… " + Clean(string(last[len(last)-limit:]), limit)
	case from > 0:
		kept = append([]string{"…"}, kept...)
	}
	return Clean(strings.Join(kept, between), limit+len(between)+1)
}

// The controls that begin a terminal sequence (ECMA-48), in their 7-bit form after
// an escape and in their 8-bit form.
const (
	esc      = '\x1b'
	bell     = '\a'
	csi      = '['
	csi8     = '\u009b'
	st       = '\\'
	st8      = '\u009c'
	strings7 = "]PX^_" // OSC, DCS, SOS, PM, APC: text follows up to ST
	strings8 = "\u009d\u0090\u0098\u009e\u009f"
)

// StripEscapes removes terminal sequences (colors, cursor moves, titles, links)
// with their parameters, and leaves every other character as it is. A sequence
// ends at its line: one that is not finished there takes only its beginning with
// it, so that it hides nothing. Invalid UTF-8 comes out as U+FFFD where there is a sequence.
func StripEscapes(text string) string {
	if !strings.ContainsAny(text, string(esc)+string(csi8)+strings8) {
		return text
	}
	in := []rune(text)
	var b strings.Builder
	for i := 0; i < len(in); {
		n := sequence(in[i:])
		if n == 0 {
			b.WriteRune(in[i])
			n = 1
		}
		i += n
	}
	return b.String()
}

// sequence is the length of the terminal sequence that in begins with, 0 = none.
func sequence(in []rune) int {
	switch {
	case in[0] == csi8:
		return 1 + control(in[1:])
	case strings.ContainsRune(strings8, in[0]):
		return 1 + stringEnd(in[1:])
	case in[0] != esc:
		return 0
	case len(in) == 1:
		return 1
	case in[1] == csi:
		return 2 + control(in[2:])
	case strings.ContainsRune(strings7, in[1]):
		return 2 + stringEnd(in[2:])
	}
	n := 1
	for n < len(in) && in[n] >= 0x20 && in[n] <= 0x2f {
		n++
	}
	if n < len(in) && in[n] >= 0x30 && in[n] <= 0x7e {
		n++
	}
	return n
}

// control is the length of what follows a CSI: parameters, intermediates, and the
// final character where there is one.
func control(in []rune) int {
	n := 0
	for n < len(in) && in[n] >= 0x30 && in[n] <= 0x3f {
		n++
	}
	for n < len(in) && in[n] >= 0x20 && in[n] <= 0x2f {
		n++
	}
	if n < len(in) && in[n] >= 0x40 && in[n] <= 0x7e {
		n++
	}
	return n
}

// stringEnd is the length of what follows the beginning of a control string, its
// end included; 0 where it does not end on its line.
func stringEnd(in []rune) int {
	for n, r := range in {
		switch {
		case r == bell || r == st8:
			return n + 1
		case r == esc && n+1 < len(in) && in[n+1] == st:
			return n + 2
		case r == '\n' || r == '\r' || r == esc:
			return 0
		}
	}
	return 0
}

// IsText reports UTF-8 without a NUL byte.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// OneLine reports UTF-8 without a control character.
func OneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}
