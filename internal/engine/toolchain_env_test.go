package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// tool is a kit whose program is on its own path, which comes before what is
// there.
func tool(id, rest string) string {
	return "id: kit." + id + "\nversion: \"1.0.0\"\n" + rest + "install: [\"mkdir -p $HOME/" + id + "; printf '#!/bin/sh\\necho from " + id +
		"\\n' > $HOME/" + id + "/tool-" + id +
		"; chmod 755 $HOME/" + id + "/tool-" + id + "\"]\nenv: { PATH: \"${HOME}/" + id + ":${PATH}\" }\n"
}

func TestKitsAddToWhatTheSandboxHas(t *testing.T) {
	t.Parallel()
	kits := map[string]string{"kits/a.yaml": tool("a", ""), "kits/b.yaml": tool("b", "requires: [a]\n")}
	const tools = "toolchain:\n  kits: [b]\n  install: [\"echo $PATH > installed\"]\n  post_acquire: [\"echo $PATH > acquired\"]\n" +
		"  pre_release: [\"echo $PATH > released; echo $AUTH >> released\"]\n" +
		"  env: { PATH: \"${PATH}:/own\", AUTH: \"Bearer ${TOKEN}$$\", FIXED: \"$${PATH}\" }\n"
	for name, place := range map[string]string{"local": onLocal,
		"vendor": strings.Replace(onStub, "workspace: { mode: remote-canonical, access: rw }\n", "", 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := tooled(t, place+mirrored+tools+"readiness: { command: [sh, -c, 'test \"$AUTH\" = \"Bearer hush-hush$\"'], timeout: 5s, interval: "+
				"100ms }\n", kits)
			ctx := context.Background()
			dir := folder(t, map[string]string{"seed": "x"})
			s := b.create(engine.Request{Profile: "profile.t", Name: "one", Inputs: map[string]any{"repo": dir},
				Secrets: map[string]engine.Secret{"TOKEN": extensions.NewSecret("hush-hush")}})
			home := strings.TrimSpace(b.sh(s.Receipt, "echo $HOME"))
			path := b.sh(s.Receipt, "echo $PATH")
			begins, ends := home+"/b:"+home+"/a:/", ":/own\n"
			if !strings.HasPrefix(path, begins) || !strings.HasSuffix(path, ends) || !strings.Contains(path, "/usr/bin:") ||
				strings.Count(path, "/own") != 1 {
				t.Errorf("PATH is %q", path)
			}
			if got := b.sh(s.Receipt, "cat installed acquired; echo $AUTH \"$FIXED\""); got != path+path+"Bearer hush-hush$ ${PATH}\n" {
				t.Errorf("commands had %q", got)
			}
			res, err := b.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"sh", "-c", "echo $PATH; echo $1", "sh", "$HOME"}})
			if err != nil || string(res.Stdout) != path+"$HOME\n" {
				t.Errorf("words: %q, %v", res.Stdout, err)
			}
			res, err = b.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"echo", "$PATH"}, Env: map[string]string{"AUTH": ""}})
			if err != nil || string(res.Stdout) != "$PATH\n" {
				t.Errorf("a program: %q, %v", res.Stdout, err)
			}
			res, err = b.Exec(ctx, s.Receipt, engine.ExecRequest{Shell: "echo $PATH", Env: map[string]string{"PATH": "/bin"}})
			if err != nil || string(res.Stdout) != "/bin\n" {
				t.Errorf("the call's own: %q, %v", res.Stdout, err)
			}
			res, err = b.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"no-such-program"}})
			if err != nil || res.ExitCode != 127 {
				t.Errorf("a program that is not there: %+v, %v", res, err)
			}
			if name == "local" { // the stub looks for no program along PATH
				res, err = b.Exec(ctx, s.Receipt, engine.ExecRequest{Command: []string{"tool-b"}})
				if err != nil || string(res.Stdout) != "from b\n" || b.sh(s.Receipt, "tool-a") != "from a\n" {
					t.Errorf("the tool: %+v, %v", res, err)
				}
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			back := b.away()
			b.Engine = b.reopen()
			if got := b.sh(s.Receipt, "echo $PATH"); got != path {
				t.Errorf("by the receipt alone: %q", got)
			}
			b.end(s)
			if got := read(t, dir, "released"); got != path+"Bearer hush-hush$\n" {
				t.Errorf("before the end: %q", got)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			back()
			b.Engine = b.reopen()
		})
	}
}

func TestWhatTheRequestSetsIsNotExpanded(t *testing.T) {
	t.Parallel()
	b := tooled(t, onLocal+"toolchain: { post_acquire: [\"echo $A $B $C > log\"], env: { A: \"${A}-kit\", B: \"${B}-kit\", C: \"${A}-${B}\" "+
		"} }\n", nil)
	s := b.create(engine.Request{Profile: "profile.t", Name: "one", Env: map[string]string{"A": "mine"},
		Secrets: map[string]engine.Secret{"B": extensions.NewSecret("hush-hush")}})
	if got := b.sh(s.Receipt, "cat log; echo $A $B $C"); got != strings.Repeat("mine hush-hush mine-kit-hush-hush-kit\n", 2) {
		t.Errorf("%q", got)
	}
	b.end(s)
	b.clean()
}
