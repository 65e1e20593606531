package vendor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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

// invocation is one running program.
type invocation struct {
	m              *machine
	ctx            context.Context
	args           []string // without the program's name
	dir            string
	env            map[string]string
	stdin          *os.File
	stdout, stderr io.Writer
}

// programs returns what can run besides the shell's own words. It is a function because some of them run
// others.
func programs() map[string]func(*invocation) int {
	return map[string]func(*invocation) int{
		"sh": runSh, "env": runEnv, "cat": runCat, "sleep": runSleep, "mkdir": runMkdir, "rm": runRm, "ls": runLs,
		"touch": runTouch, "chmod": runChmod, "ln": runLn, "id": runID, "which": runWhich, "wc": runWc, "tee": runTee,
		"readlink": runReadlink, "send": runSend, "lookup": runLookup,
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
	if run, ok := programs()[program(word)]; ok {
		return run(inv)
	}
	if name := program(word); realProgram[name] {
		return inv.m.interpret(inv.ctx, Command{Argv: append([]string{name}, inv.args...)}, inv.dir, inv.env, inv.stdin, inv.stdout, inv.stderr)
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

func runSh(inv *invocation) int {
	args := inv.args
	if len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-c" && args[0] != "-s" {
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
	if t := inv.m.time; t != nil && !t.pass(total) || t == nil && (sleep(inv.ctx, total) != nil || inv.m.hold(inv.ctx) != nil) {
		return 143
	}
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
		_, known := programs()[a]
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
