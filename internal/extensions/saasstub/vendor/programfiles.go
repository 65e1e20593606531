package vendor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
)

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

// flag removes one of the names from the front of args.
func flag(args []string, names ...string) (bool, []string) {
	if len(args) > 0 && slices.Contains(names, args[0]) {
		return true, args[1:]
	}
	return false, args
}
