// Package shtext holds POSIX sh programs and sends them without what only people read.
package shtext

import (
	"embed"
	"strings"
	"sync"
)

// Files are the programs of one package: sh/NAME.sh each.
type Files struct {
	FS    embed.FS
	known sync.Map // name -> text
}

// Text returns a program as it is sent, without comments and indentation; false if there is none of that name.
func (f *Files) Text(name string) (string, bool) {
	if text, ok := f.known.Load(name); ok {
		return text.(string), true
	}
	raw, err := f.FS.ReadFile("sh/" + name + ".sh")
	if err != nil {
		return "", false
	}
	text := strip(string(raw))
	f.known.Store(name, text)
	return text, true
}

// Join returns programs one after another, each from the first of these places that has it. The last is the
// one that runs; those before it define functions for it.
func Join(from []*Files, names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(find(from, name))
	}
	return b.String()
}

func find(from []*Files, name string) string {
	for _, f := range from {
		if text, ok := f.Text(name); ok {
			return text
		}
	}
	panic("no sh program " + name) // they are embedded; every test finds a wrong name
}

// strip drops lines that hold only a comment, and empty lines. Quoted text of several lines must not contain
// such lines, and here-documents are not used.
func strip(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if bare == "" || strings.HasPrefix(bare, "#") {
			continue
		}
		b.WriteString(strings.TrimLeft(strings.TrimRight(line, "\r\n"), "\t"))
		b.WriteByte('\n')
	}
	return b.String()
}

// Quote makes s one word of a POSIX shell, whatever it contains except NUL, which no shell word can hold.
func Quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
