package vendor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// invocation is one program being run.
type invocation struct {
	m              *machine
	ctx            context.Context
	args           []string // without the program's name
	dir            string
	env            map[string]string
	stdin          *os.File
	stdout, stderr io.Writer
}

// programs are what can be run besides the shell's own words.
var programs map[string]func(*invocation) int

func init() { // sh and env run programs themselves: a literal would refer to itself
	programs = map[string]func(*invocation) int{
		"sh": runSh, "env": runEnv, "cat": runCat, "sleep": runSleep, "mkdir": runMkdir, "rm": runRm, "ls": runLs,
		"touch": runTouch, "chmod": runChmod, "ln": runLn, "id": runID, "which": runWhich, "wc": runWc, "tee": runTee,
		"readlink": runReadlink,
	}
}

// exec runs what is neither a function nor a word of the shell.
func (m *machine) exec(ctx context.Context, args []string) error {
	h := interp.HandlerCtx(ctx)
	env := map[string]string{}
	h.Env.Each(func(k string, v expand.Variable) bool {
		if v.Exported && v.Kind == expand.String {
			env[k] = v.Str
		} else {
			delete(env, k)
		}
		return true
	})
	stdin, ok := h.Stdin.(*os.File)
	if !ok {
		return fmt.Errorf("standard input is a %T", h.Stdin)
	}
	inv := &invocation{m: m, ctx: ctx, args: args[1:], dir: h.Dir, env: env, stdin: stdin, stdout: h.Stdout, stderr: h.Stderr}
	if code := inv.start(args[0]); code != 0 {
		if err := ctx.Err(); err != nil {
			return err // a fatal error: the shell stops here
		}
		return interp.ExitStatus(code)
	}
	return ctx.Err()
}

// start runs a program by name or a script by path.
func (inv *invocation) start(word string) int {
	if run, ok := programs[program(word)]; ok {
		return run(inv)
	}
	if !strings.Contains(word, "/") {
		return inv.fail(127, "%s: not found", word)
	}
	abs := resolve(inv.dir, word)
	info, err := inv.m.root.Stat(inside(abs))
	switch {
	case err != nil:
		return inv.fail(127, "%s: not found", word)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0:
		return inv.fail(126, "%s: permission denied", word)
	}
	b, err := inv.m.root.ReadFile(inside(abs))
	if err != nil {
		return inv.fail(126, "%s: cannot be read", word)
	}
	if !bytes.HasPrefix(b, []byte("#!/bin/sh")) && !bytes.HasPrefix(b, []byte("#!/usr/bin/env sh")) {
		return inv.fail(126, "%s: exec format error: only scripts for /bin/sh can run here", word)
	}
	return inv.m.shell(inv.ctx, string(b), word, inv.args, inv.dir, inv.env, inv.stdin, inv.stdout, inv.stderr)
}

func (inv *invocation) fail(code int, format string, args ...any) int {
	_, _ = fmt.Fprintf(inv.stderr, format+"\n", args...)
	return code
}

func (inv *invocation) inside(p string) string { return inside(resolve(inv.dir, p)) }

// change runs fn on each path that may be changed.
func (inv *invocation) change(name string, paths []string, fn func(rel string) error) int {
	code := 0
	for _, p := range paths {
		err := inv.m.writable(resolve(inv.dir, p))
		if err == nil {
			err = fn(inv.inside(p))
		}
		if err != nil {
			code = inv.fail(1, "%v", tell(name, p, err))
		}
	}
	return code
}

func runSh(inv *invocation) int {
	args := inv.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-c" && args[0] != "-s" {
		if args[0] != "-e" && args[0] != "-u" {
			return inv.fail(2, "sh: %s: not supported", args[0])
		}
		return runShWith(inv, "set "+args[0]+"\n", args[1:])
	}
	return runShWith(inv, "", args)
}

func runShWith(inv *invocation, prefix string, args []string) int {
	var script, name string
	var params []string
	switch {
	case len(args) >= 2 && args[0] == "-c":
		script, name, params = args[1], "sh", args[2:]
		if len(params) > 0 {
			name, params = params[0], params[1:]
		}
	case len(args) == 0 || args[0] == "-s":
		b, err := io.ReadAll(inv.stdin)
		if err != nil {
			return inv.fail(2, "sh: cannot read the script")
		}
		script, name = string(b), "sh"
		if len(args) > 0 {
			params = args[1:]
		}
	case args[0] == "-c":
		return inv.fail(2, "sh: -c wants a script")
	default:
		b, err := inv.m.root.ReadFile(inv.inside(args[0]))
		if err != nil {
			return inv.fail(127, "%v", tell("sh", args[0], err))
		}
		script, name, params = string(b), args[0], args[1:]
	}
	return inv.m.shell(inv.ctx, prefix+script, name, params, inv.dir, inv.env, inv.stdin, inv.stdout, inv.stderr)
}

func runEnv(inv *invocation) int {
	args := inv.args
	if len(args) > 0 && (args[0] == "-i" || args[0] == "-") {
		inv.env, args = map[string]string{}, args[1:]
	}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		k, v, _ := strings.Cut(args[0], "=")
		inv.env[k], args = v, args[1:]
	}
	if len(args) == 0 {
		for _, k := range slices.Sorted(maps.Keys(inv.env)) {
			_, _ = fmt.Fprintf(inv.stdout, "%s=%s\n", k, inv.env[k])
		}
		return 0
	}
	return inv.m.interpret(inv.ctx, Command{Argv: args}, inv.dir, inv.env, inv.stdin, inv.stdout, inv.stderr)
}

func runCat(inv *invocation) int {
	if len(inv.args) == 0 {
		inv.args = []string{"-"}
	}
	for _, p := range inv.args {
		if p == "-" {
			if _, err := io.Copy(inv.stdout, inv.stdin); err != nil {
				return 1
			}
			continue
		}
		f, err := inv.m.open(inv.ctx, resolve(inv.dir, p), os.O_RDONLY, 0)
		if err != nil {
			return inv.fail(1, "%v", tell("cat", p, err))
		}
		_, err = io.Copy(inv.stdout, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return inv.fail(1, "%v", tell("cat", p, err))
		}
	}
	return 0
}

func runSleep(inv *invocation) int {
	var total time.Duration
	for _, a := range inv.args {
		s, err := strconv.ParseFloat(strings.TrimSuffix(a, "s"), 64)
		if err != nil || s < 0 || s > 1e9 {
			return inv.fail(1, "sleep: %q is not a time", a)
		}
		total += time.Duration(s * float64(time.Second))
	}
	if sleep(inv.ctx, total) != nil {
		return 143
	}
	return 0
}

func runMkdir(inv *invocation) int {
	parents, paths := flag(inv.args, "-p")
	return inv.change("mkdir", paths, func(rel string) error {
		if parents {
			return inv.m.root.MkdirAll(rel, 0o755)
		}
		return inv.m.root.Mkdir(rel, 0o755)
	})
}

func runRm(inv *invocation) int {
	all, paths := flag(inv.args, "-rf", "-fr")
	force, paths := flag(paths, "-f")
	return inv.change("rm", paths, func(rel string) error {
		if all {
			return inv.m.root.RemoveAll(rel)
		}
		err := inv.m.root.Remove(rel)
		if force && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

func runLs(inv *invocation) int {
	_, paths := flag(inv.args, "-1", "-a", "-A")
	if len(paths) == 0 {
		paths = []string{"."}
	}
	for _, p := range paths {
		info, err := inv.m.root.Stat(inv.inside(p))
		if err != nil {
			return inv.fail(2, "%v", tell("ls", p, err))
		}
		if !info.IsDir() {
			_, _ = fmt.Fprintln(inv.stdout, p)
			continue
		}
		entries, err := fs.ReadDir(inv.m.root.FS(), inv.inside(p))
		if err != nil {
			return inv.fail(2, "%v", tell("ls", p, err))
		}
		for _, e := range entries {
			_, _ = fmt.Fprintln(inv.stdout, e.Name())
		}
	}
	return 0
}

func runTouch(inv *invocation) int {
	return inv.change("touch", inv.args, func(rel string) error {
		f, err := inv.m.root.OpenFile(rel, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		return f.Close()
	})
}

func runChmod(inv *invocation) int {
	if len(inv.args) < 2 {
		return inv.fail(1, "chmod: wants a mode and a path")
	}
	mode, err := strconv.ParseUint(inv.args[0], 8, 9)
	if inv.args[0] == "+x" {
		mode, err = 0o755, nil
	}
	if err != nil {
		return inv.fail(1, "chmod: %q is not an octal mode", inv.args[0])
	}
	return inv.change("chmod", inv.args[1:], func(rel string) error { return inv.m.root.Chmod(rel, fs.FileMode(mode)) })
}

func runLn(inv *invocation) int {
	symbolic, paths := flag(inv.args, "-s", "-sf")
	if !symbolic || len(paths) != 2 {
		return inv.fail(1, "ln: only symbolic links can be made here: ln -s TARGET NAME")
	}
	return inv.change("ln", paths[1:], func(rel string) error { return inv.m.root.Symlink(paths[0], rel) })
}

func runReadlink(inv *invocation) int {
	if len(inv.args) != 1 {
		return inv.fail(1, "readlink: wants one path")
	}
	to, err := inv.m.root.Readlink(inv.inside(inv.args[0]))
	if err != nil {
		return 1
	}
	_, _ = fmt.Fprintln(inv.stdout, to)
	return 0
}

func runID(inv *invocation) int {
	switch strings.Join(inv.args, " ") {
	case "-u", "-g":
		_, _ = fmt.Fprintln(inv.stdout, "1000")
	case "-un", "-gn":
		_, _ = fmt.Fprintln(inv.stdout, "sandbox")
	default:
		_, _ = fmt.Fprintln(inv.stdout, "uid=1000(sandbox) gid=1000(sandbox) groups=1000(sandbox)")
	}
	return 0
}

func runWhich(inv *invocation) int {
	code := 0
	for _, a := range inv.args {
		_, known := programs[a]
		switch {
		case known || realProgram[a]:
			_, _ = fmt.Fprintln(inv.stdout, path.Join("/bin", a))
		case interp.IsBuiltin(a):
			_, _ = fmt.Fprintln(inv.stdout, a)
		default:
			code = 1
		}
	}
	return code
}

func runWc(inv *invocation) int {
	if len(inv.args) != 1 || inv.args[0] != "-c" && inv.args[0] != "-l" {
		return inv.fail(1, "wc: only wc -c and wc -l of the standard input")
	}
	b, err := io.ReadAll(inv.stdin)
	if err != nil {
		return 1
	}
	n := len(b)
	if inv.args[0] == "-l" {
		n = bytes.Count(b, []byte("\n"))
	}
	_, _ = fmt.Fprintln(inv.stdout, n)
	return 0
}

func runTee(inv *invocation) int {
	out := []io.Writer{inv.stdout}
	for _, p := range inv.args {
		f, err := inv.m.open(inv.ctx, resolve(inv.dir, p), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return inv.fail(1, "%v", tell("tee", p, err))
		}
		defer func() { _ = f.Close() }()
		out = append(out, f)
	}
	if _, err := io.Copy(io.MultiWriter(out...), inv.stdin); err != nil {
		return 1
	}
	return 0
}

// flag takes the first of the names off the front of args.
func flag(args []string, names ...string) (bool, []string) {
	if len(args) > 0 && slices.Contains(names, args[0]) {
		return true, args[1:]
	}
	return false, args
}
