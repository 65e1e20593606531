package composessh

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// asTar gives a sandbox a script in place of its tar, and this machine's dash in
// place of its shell: busybox's takes its own tar whatever else there is.
func asTar(t testing.TB, b *Backend, h extensions.Handle, script string, more ...entry) {
	t.Helper()
	dash, err := exec.LookPath("dash")
	if err != nil {
		t.Skip(err)
	}
	libraries, err := exec.CommandContext(t.Context(), "ldd", dash).Output()
	if err != nil {
		t.Skipf("ldd: %v", err)
	}
	up, loader := more, ""
	for word := range strings.FieldsSeq(string(libraries) + dash) {
		if !strings.HasPrefix(word, "/") {
			continue
		}
		body, err := os.ReadFile(word)
		must(t, err)
		up = append(up, entry{name: filepath.Base(word), body: string(body), mode: 0o755})
		if strings.HasPrefix(filepath.Base(word), "ld-") {
			loader = filepath.Base(word)
		}
	}
	up = append(up, entry{name: "as-tar", body: "#!/bin/busybox sh\n" + script, mode: 0o755},
		entry{name: "as-sh", body: "#!/bin/busybox sh\nexec /opt/" + loader + " --library-path /opt /opt/dash \"$@\"\n", mode: 0o755})
	must(t, b.Upload(t.Context(), h, "/opt", bytes.NewReader(newTar(t, up...))))
	r := run(t, b, h, extensions.ExecRequest{User: "0", Shell: "mv /opt/as-tar /bin/tar && mv /opt/as-sh /bin/sh"})
	if r.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
}

// A map of very many holes is longer than what is read of a header.
func TestAFileOfManyHolesComesOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.open(t)
	h := s.several(t, b, "web")
	long := newTar(t, entry{name: "a", body: "1"}, entry{name: "header", body: strings.Repeat("x", 1<<20+1)}, entry{name: "holed"})
	header := long[1024:1536]
	header[156] = 'x'
	copy(header[148:156], "        ")
	sum := 0
	for _, c := range header {
		sum += int(c)
	}
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
	r := run(t, b, h, extensions.ExecRequest{Shell: "mkdir /tmp/many && cd /tmp/many && echo -n 1 >a && echo -n 2 >holed && ln -s a z"})
	if r.ExitCode != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	asTar(t, b, h, `case "$*" in --version) echo GNU ;; *-S*) cat /opt/long ;; *) exec /bin/busybox tar "$@" ;; esac`,
		entry{name: "long", body: string(long), mode: 0o644})
	wantFiles(t, "it", taken(t, b, h, "/tmp/many"), map[string]string{"a": "1", "holed": "2", "z": "-> a"})
}
