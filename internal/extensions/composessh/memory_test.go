package composessh

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/exttest"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// asFile gives a secret as a file.
func asFile(name, value string) exttest.Option {
	return exttest.With(func(s *extensions.Spec) {
		exttest.WithSecret(name, value)(s)
		exttest.WithSecretsAs(extensions.SecretsFile)(s)
	})
}

// folders are those with the files of secrets of this site.
func (s *site) folders(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(s.memory(t) + "*")
	must(t, err)
	return found
}

// folderOf is the one of a sandbox, "" where there is none.
func (s *site) folderOf(t testing.TB, id extensions.ID) string {
	t.Helper()
	for _, folder := range s.folders(t) {
		if strings.HasSuffix(folder, string(id)) {
			return folder
		}
	}
	return ""
}

const secretStack = `
services:
  web:
    image: IMAGE
    user: "1234:1234"
    read_only: true
    command: [sh, -c, "cat /run/secrets/TOKEN >/tmp/at-the-start; exec sleep 600"]
    tmpfs: [/tmp]
    secrets: [own, {source: again, target: second}]
  db:
    image: IMAGE
    command: [sleep, "600"]
    environment: [OTHER]
  plain:
    image: IMAGE
    command: [sleep, "600"]
secrets:
  own: {file: ./page}
  again: {environment: TOKEN}
`

// The canary is looked for everywhere: in all that the engine tells and keeps, in
// the sandbox's folder, and in the arguments and environments of all processes.
func TestSecretsAsFilesAreInMemoryAndInNoRecord(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	before := s.residue(t)
	const canary, other = "canary-2b7d-as-a-file", "canary-91cc-of-another"
	spec := s.stack(t, secretStack, asFile("TOKEN", canary), asFile("OTHER", other))
	h := s.provision(t, b, spec)
	for _, c := range []struct{ service, look, want string }{
		{"web", "cat /tmp/at-the-start /run/secrets/TOKEN /run/secrets/OTHER /run/secrets/own /run/secrets/second", canary + canary + other +
			"hello" + canary},
		{"web", "id -u; stat -f -c %T /run/secrets/TOKEN; echo x 2>/dev/null >/run/secrets/TOKEN || echo sealed; env | grep canary",
			"1234\ntmpfs\nsealed\n"},
		{"db", "cd /run/secrets && echo *; cat *; env | grep canary", "OTHER\n" + other},
		{"plain", "ls /run/secrets 2>/dev/null; env | grep canary", ""},
	} {
		r, err := b.Exec(t.Context(), h, extensions.ExecRequest{Shell: c.look, Service: c.service})
		must(t, err)
		if string(r.Stdout) != c.want {
			t.Errorf("%s: %s\n printed %q, want %q (%s)", c.service, c.look, r.Stdout, c.want, r.Stderr)
		}
	}
	folders := s.folders(t)
	if len(folders) != 1 {
		t.Fatalf("in memory there are %q", folders)
	}
	info, err := os.Stat(folders[0])
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder in memory is open: %s", info.Mode())
	}
	committed := docker(t, "commit", string(h.ID)+"-web-1")
	t.Cleanup(func() { docker(t, "rmi", "-f", committed) })
	saved, err := exec.CommandContext(t.Context(), "docker", "save", committed).Output()
	must(t, err)
	places := map[string]string{"an image committed of it": string(saved), "docker inspect of it": docker(t, "inspect", committed),
		"the handle": h.Encode(), "the answer": strings.Join(s.outside(t), "\n")}
	for _, id := range s.containers(t) {
		places["docker inspect "+id] = docker(t, "inspect", id)
		places["docker logs "+id] = docker(t, "logs", id)
	}
	for what, text := range places {
		if strings.Contains(text, "canary-") {
			t.Errorf("a secret is in: %s", what)
		}
	}
	for _, dir := range []string{docker(t, "info", "-f", "{{.DockerRootDir}}"), s.server.HomeDir, s.config.StateDir} {
		if held := holding(dir, canary, other); len(held) > 0 {
			t.Errorf("a secret is on the disk: %q", held)
		}
	}
	if held := processesWith(canary, other); len(held) > 0 {
		t.Errorf("a secret is in the environment or the arguments of processes: %q", held)
	}
	_, err = b.Teardown(t.Context(), h)
	must(t, err)
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// holding lists the files below dir that hold one of the texts. It looks into
// mounts, too, and not into files over 1 GiB: another test's may be a hole.
func holding(dir string, texts ...string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what goes while it is looked at
		}
		if info, err := d.Info(); err != nil || info.Size() > 1<<30 {
			return nil //nolint:nilerr // as above
		}
		b, _ := os.ReadFile(path)
		if slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(b, []byte(text)) }) {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// processesWith lists what every process of this machine but the test's own
// tells of itself.
func processesWith(texts ...string) []string {
	var found []string
	for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			b, _ := os.ReadFile(file)
			if slices.ContainsFunc(texts, func(text string) bool { return bytes.Contains(b, []byte(text)) }) {
				found = append(found, file)
			}
		}
	}
	return found
}

func TestSecretsAsFilesGoAtTheDeadline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.provision(t, b, s.spec(t, asFile("TOKEN", "canary")))
	if len(s.folders(t)) != 1 {
		t.Fatal("there is no folder in memory")
	}
	s.overdue(t, h.ID)
	if !waitFor(func() bool { return len(s.folders(t)) == 0 }) {
		t.Fatalf("after the deadline there are %q, and it is %s", s.folders(t), s.observe(t, b, h).Phase)
	}
}

// Recreated with other values, it has those and no others.
func TestSecretsAsFilesAreReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	spec := s.spec(t, asFile("TOKEN", "former-canary"))
	s.provision(t, b, spec)
	spec.Generation, spec.Secrets = 2, map[string]extensions.Secret{"TOKEN": extensions.NewSecret("second")}
	spec.Labels = exttest.Labels(spec)
	h := s.provision(t, b, spec)
	if r := run(t, b, h, extensions.ExecRequest{Shell: "cat /run/secrets/TOKEN"}); string(r.Stdout) != "second" {
		t.Errorf("inside is %q", r.Stdout)
	}
	for _, dir := range append(s.folders(t), s.root) {
		if held := holding(dir, "former-canary"); len(held) > 0 {
			t.Errorf("the former value is in %q", held)
		}
	}
}

// Who is not root leaves nothing there that is the login's: logind would take it.
func TestSecretsAsFilesOfALoginThatIsNotRoot(t *testing.T) {
	t.Parallel()
	s := siteOfAnOrdinaryUser(t)
	b := s.open(t)
	before := s.residue(t)
	value := "it's \"$HOME\"\n\\n`id`\n\n"
	h := s.provision(t, b, s.spec(t, asFile("TOKEN", value)))
	if r := run(t, b, h, extensions.ExecRequest{Shell: "cat /run/secrets/TOKEN; printf ."}); string(r.Stdout) != value+"." {
		t.Errorf("inside is %q", r.Stdout)
	}
	for _, folder := range s.folders(t) {
		if out, err := exec.CommandContext(t.Context(), "stat", "-c", "%u %a", folder).Output(); string(out) != "0 700\n" {
			t.Errorf("%s: owner and mode are %q (%v)", folder, out, err)
		}
	}
	_, err := b.Teardown(t.Context(), h)
	must(t, err)
	if left := s.left(t, before); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// The host's loop looks after what somebody removed the record of.
func TestSecretsAsFilesGoWithTheirRecord(t *testing.T) {
	t.Parallel()
	for what, remove := range map[string]func(s *site, id extensions.ID) string{
		"the sandbox's folder": func(s *site, id extensions.ID) string { return filepath.Join(s.root, string(id)) },
		"the host root":        func(s *site, _ extensions.ID) string { return s.root },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			b := s.open(t)
			h := s.provision(t, b, s.spec(t, asFile("TOKEN", "canary")))
			other := s.provision(t, b, s.spec(t, asFile("TOKEN", "canary")))
			s.removeObjects(t, h.ID)
			must(t, os.RemoveAll(remove(s, h.ID)))
			if !waitFor(func() bool { return s.folderOf(t, h.ID) == "" }) {
				t.Fatalf("still there: %q", s.folders(t))
			}
			if _, err := os.Stat(s.root); err == nil && s.folderOf(t, other.ID) == "" {
				t.Error("and with it the files of another sandbox")
			}
		})
	}
}

// What lost its record goes with the next sandbox of that root, and nobody else's.
func TestFoldersInMemoryOfNoSandboxGo(t *testing.T) {
	t.Parallel()
	hosttest.Docker(t)
	inShells(t, []string{"folder", "remove", "memory", "toolbox", "list"}, `
id=sbx-aaaaaaaaaaaaaaaaaaaa secret_files="printf %s one >A || exit"
mkdir -p "$root/$id" && box=$root/$id
memory_put
lost=$memory_prefix${id%a}b others=$memory_place/sandboxer-0-$$-sbx-cccccccccccccccccccc
mkdir "$lost" "$others"
memory_sweep
ls -l "$SBX_SECRETS" | cut -c 1-10 | tail -n 1
[ ! -e "$lost" ] && [ -d "$others" ] && echo kept
rmdir "$others" "$root/$id"
memory_sweep
[ ! -e "$SBX_SECRETS" ] && echo gone
memory_place=$root
! (fail() { echo "$1"; exit 1; }; memory_put)
`, "-r--r--r--\nkept\ngone\nunsupported")
}
