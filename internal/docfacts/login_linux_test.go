package docfacts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The guide's own commands, run on files of this test, make a login that an sshd
// without PAM lets in: "!" in the password field is an account that is locked.
func TestTheGuidesLoginIsNotLocked(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("useradd"); err != nil || os.Getuid() != 0 {
		t.Skip("needs root and useradd")
	}
	root := t.TempDir()
	for _, dir := range []string{"etc", "home"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"passwd": "", "shadow": "", "gshadow": "", "group": "docker:x:999:\n"} {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	guide, err := os.ReadFile("../../docs/guides/bring-a-host.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(guide)) {
		for _, tool := range []string{"useradd", "usermod"} {
			args, ok := strings.CutPrefix(line, "    sudo "+tool+" ")
			if !ok {
				continue
			}
			cmd := exec.CommandContext(t.Context(), "sh", "-c", tool+" --prefix '"+root+"' "+args)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", line, err, out)
			}
		}
	}
	shadow, err := os.ReadFile(filepath.Join(root, "etc", "shadow"))
	if err != nil {
		t.Fatal(err)
	}
	if f := strings.Split(string(shadow), ":"); f[0] != "sandbox" || f[1] == "" || strings.HasPrefix(f[1], "!") {
		t.Errorf("the guide's login is %q", shadow)
	}
}
