// Package shtexttest holds what tests of sh programs share: the shells of this machine, and the promise that
// every program is POSIX.
package shtexttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext"
)

// Shells lists those of this machine that a place's sh may be, as the words of a command line.
func Shells(t testing.TB) [][]string {
	t.Helper()
	var found [][]string
	for _, s := range [][]string{{"dash"}, {"busybox", "ash"}, {"bash", "--posix"}, {"bash"}} {
		if _, err := exec.LookPath(s[0]); err == nil {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		t.Fatal("there is no shell at all")
	}
	return found
}

// Programs returns the files of f by name, as they are written.
func Programs(t testing.TB, f *shtext.Files) map[string]string {
	t.Helper()
	files, err := f.FS.ReadDir("sh")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		text, err := f.FS.ReadFile("sh/" + file.Name())
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(file.Name(), ".sh")] = string(text)
	}
	return all
}

// POSIX wants programs to be POSIX sh by its grammar and by every shell of this machine.
func POSIX(t testing.TB, programs map[string]string) {
	t.Helper()
	for name, text := range programs {
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), name); err != nil {
			t.Errorf("%v", err)
		}
		for _, shell := range Shells(t) {
			cmd := exec.CommandContext(t.Context(), shell[0], append(slices.Clone(shell[1:]), "-n")...)
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s in %v: %v: %s", name, shell, err, out)
			}
		}
	}
}

// Prints runs a program in each shell of this machine, in a folder of its own that only this user enters, and
// wants it to print want.
func Prints(t *testing.T, program, want string) {
	t.Helper()
	for _, shell := range Shells(t) {
		t.Run(filepath.Base(strings.Join(shell, "-")), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), shell[0], shell[1:]...)
			cmd.Dir = t.TempDir()
			if err := os.Chmod(cmd.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd.Stdin = strings.NewReader(program)
			out, err := cmd.Output() // a shell's remarks on jobs are none of the script's
			if err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("%v: printed %q, want %q", err, out, want)
			}
		})
	}
}
