package vendor_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func started(t *testing.T) (*vendor.Vendor, *vendor.Client, string) {
	t.Helper()
	v := vendor.At(t.TempDir())
	c := v.Client("acme/web", "", 0)
	o, err := c.Create(t.Context(), vendor.Request{Name: "sbx-one", Title: "one", Labels: map[string]string{"k": "sbx-one"},
		Deadline: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Start(t.Context(), o.Ref, map[string]string{"GREETING": "hello"}, nil); err != nil {
		t.Fatal(err)
	}
	return v, c, o.Ref
}

func TestShellInterpretsWithoutTheHost(t *testing.T) {
	t.Setenv("HOST_CANARY", "leaked") // the shell must not see this process
	_, c, ref := started(t)
	for _, tc := range []struct {
		name, script, stdin, want string
		code                      int
	}{
		{"variables", `echo "$GREETING $HOME $PWD"`, "", "hello /home/sandbox /workspace\n", 0},
		{"no host environment", `echo "[$HOST_CANARY]"; env | while read l; do case "$l" in HOST_*) echo bad;; esac; done`, "", "[]\n", 0},
		{"no host files", `cat /etc/passwd 2>/dev/null || echo none`, "", "none\n", 0},
		{"no host programs", `/bin/uname || echo $?; ls /bin 2>/dev/null || echo bare`, "", "127\nbare\n", 0},
		{"pipes", `printf 'b\na\n' | cat | wc -l`, "", "2\n", 0},
		{"redirects", `mkdir -p d && echo x >d/f && cat <d/f && rm -rf d && ls`, "", "x\n", 0},
		{"cd", `mkdir -p /tmp/x && cd /tmp/x && pwd && cd .. && pwd`, "", "/tmp/x\n/tmp\n", 0},
		{"stdin", `read a; echo "got $a"; cat`, "1\n2\n", "got 1\n2\n", 0},
		{"exit code", `exit 7`, "", "", 7},
		{"signal", `kill -KILL $$; echo no`, "", "", 137},
		{"nested", `sh -c 'echo "$0 $1"; exit 3' zero one; echo $?`, "", "zero one\n3\n", 0},
		{"scripts", `printf '#!/bin/sh\necho ran $1\n' >s; ./s 2>/dev/null; echo $?; chmod 755 s; ./s it`, "", "126\nran it\n", 0},
		{"null device", `echo x >/dev/null; cat </dev/null; echo $?`, "", "0\n", 0},
		{"links cannot leave", `ln -s /etc/hostname l; cat l 2>/dev/null || echo shut; ln -s ../../../../../etc/hostname m; cat m 2>/dev/null || echo shut`,
			"", "shut\nshut\n", 0},
		{"temporary folder of the shell", `TMPDIR=/tmp; export TMPDIR; echo "$TMPDIR"; cat /tmp/sh-interp-x 2>/dev/null || echo none`, "",
			"/tmp\nnone\n", 0},
		{"command -v", `command -v cat; command -v docker || echo no`, "", "/bin/cat\nno\n", 0},
		{"export", `A="a  b"; export A B='c'"$A" C=; readonly D=d; sh -c 'echo "$A|$B|$C|$D"'; export A; f() { export F=$1; }; f x; sh -c 'echo $F'`, "", "a  b|ca  b||\nx\n", 0},
		{"exec", `exec /bin/echo "$GREETING" 'a  b'; echo no`, "", "hello a  b\n", 0},
		{"syntax error", `if`, "", "", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errw bytes.Buffer
			code, err := c.Exec(t.Context(), ref, vendor.Command{Script: tc.script, Stdin: strings.NewReader(tc.stdin), Stdout: &out, Stderr: &errw})
			if err != nil || code != tc.code || out.String() != tc.want {
				t.Errorf("code %d, err %v, out %q, stderr %q; want code %d, out %q", code, err, out.String(), errw.String(), tc.code, tc.want)
			}
		})
	}
}

func TestCancelEndsWhatIsRunning(t *testing.T) {
	t.Parallel()
	_, c, ref := started(t)
	for _, script := range []string{`sleep 100`, `while :; do :; done`, `sleep 100 & wait`, `cat`, `read x`,
		`(while :; do sleep 0.01; done) & sleep 100`} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		var out bytes.Buffer
		stdin, w := pipe()
		_, err := c.Exec(ctx, ref, vendor.Command{Script: script, Stdin: stdin, Stdout: &out, Stderr: &out})
		_ = w.Close()
		cancel()
		if err == nil {
			t.Errorf("%s: no error after the context ended", script)
		}
	}
}

func TestBackgroundDoesNotOutliveItsCommand(t *testing.T) {
	t.Parallel()
	_, c, ref := started(t)
	var out bytes.Buffer
	code, err := c.Exec(t.Context(), ref, vendor.Command{Script: `sleep 100 & echo done`, Stdout: &out, Stderr: &out})
	if err != nil || code != 0 || out.String() != "done\n" {
		t.Fatalf("code %d, err %v, out %q", code, err, out.String())
	}
}

func TestDeadlineEndsAnObjectAtItsTrueTime(t *testing.T) {
	t.Parallel()
	v, c, ref := started(t)
	if err := v.Advance(2 * time.Hour); err != nil {
		t.Fatal(err)
	}
	objs, _, err := c.Get(t.Context(), ref)
	if err != nil || objs[0] == nil {
		t.Fatalf("get: %v, %v", objs, err)
	}
	if o := objs[0]; o.State != vendor.StateExpired || !o.EndedAt.Equal(o.Deadline) {
		t.Errorf("state %s, ended %s, deadline %s", o.State, o.EndedAt, o.Deadline)
	}
}

func TestRulesAreCountedAcrossClients(t *testing.T) {
	t.Parallel()
	v, c, _ := started(t)
	err := vendor.WriteScript(v.Dir(), vendor.Script{Rules: []vendor.Rule{{Op: vendor.OpList, Do: vendor.DoThrottle, Skip: 1, Times: 2,
		RetryAfter: vendor.Duration(time.Second)}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []bool
	for range 5 {
		_, err := c.List(t.Context(), "")
		got = append(got, err == nil)
		c = vendor.At(v.Dir()).Client("acme/web", "", 0)
	}
	want := []bool{true, false, false, true, true}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("answers %v, want %v", got, want)
		}
	}
}
