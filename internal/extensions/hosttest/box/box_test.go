package box

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var homes = map[string]string{"user": "/home/user", "root": "/root"}

func newBox(t *testing.T) (*Shelf, *Box) {
	t.Helper()
	s := NewShelf(t)
	b, err := s.New("one", homes)
	must(t, err)
	t.Cleanup(func() { must(t, b.Remove()) })
	return s, b
}

// shell runs a script inside to its end.
func shell(t *testing.T, b *Box, script string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/bin/sh", "-c", script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env, cmd.WaitDelay = &out, &out, "/home/user", []string{"PATH=" + SearchPath, "A=1"}, time.Second
	must(t, b.Start(cmd))
	_ = cmd.Wait()
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestAProcessSeesItsBoxAlone(t *testing.T) {
	t.Parallel()
	s, b := newBox(t)
	out, code := shell(t, b, `pwd; id -un; echo "$A"; ls / | tr '\n' ' '; exit 7`)
	if want := "/home/user\nroot\n1\nbin dev etc home opt proc root run tmp usr var "; strings.Replace(out, "user\n1", "root\n1", 1) != want || code != 7 {
		t.Errorf("%q, exit %d", out, code)
	}
	if out, _ := shell(t, b, `ls -d /proc/[0-9]* | wc -l; test -r /proc/self/environ && read -r x </proc/self/stat && echo reads; ls `+s.folder); !strings.Contains(out, "reads") ||
		strings.HasPrefix(out, "1") && len(strings.Fields(out)[0]) > 1 || !strings.Contains(out, "No such file") {
		t.Errorf("%q", out)
	}
	if out, _ := shell(t, b, "echo x >/etc/passwd && echo x >file && ln -s /etc/passwd link && cat link"); out != "x\n" {
		t.Errorf("it is not its own: %q", out)
	}
	if text, err := os.ReadFile(b.Host("/home/user/link")); err != nil || string(text) != "x\n" {
		t.Errorf("%q, %v", text, err)
	}
	if b.Host("/../../etc") != b.Root+"/etc" || b.Itself("/home/user/link") != b.Root+"/home/user/link" {
		t.Error("paths lead out, or links are not themselves")
	}
}

func TestWhatABoxBeganEndsWithIt(t *testing.T) {
	t.Parallel()
	_, b := newBox(t)
	shell(t, b, "setsid sleep 1000 >/dev/null 2>&1 & (env -i setsid sleep 1000 &) >/dev/null 2>&1")
	if n := len(b.Processes()); n != 2 {
		t.Errorf("%d processes inside", n)
	}
	must(t, b.Kill())
	if n := len(b.Processes()); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if out, code := shell(t, b, "echo again"); out != "again\n" || code != 0 {
		t.Errorf("after a kill: %q, %d", out, code)
	}
	must(t, b.Remove())
	if _, err := os.Stat(b.Root); err == nil {
		t.Error("its folder is left")
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	if strings.Contains(string(mounts), b.Root) {
		t.Error("a mount is left on the machine")
	}
}

func TestAnOrphanIsReaped(t *testing.T) {
	t.Parallel()
	_, b := newBox(t)
	shell(t, b, "(sleep 0.1 & ) ; :")
	for range 100 {
		if out, _ := shell(t, b, "cat /proc/[0-9]*/stat | grep -c ' Z '"); out == "0\n" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("a dead process stays")
}

func TestABoxIsFrozenAndCopied(t *testing.T) {
	t.Parallel()
	s, b := newBox(t)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "while :; do echo x >>/tmp/beats; sleep 0.02; done")
	cmd.Env = []string{"PATH=/bin"}
	must(t, b.Start(cmd))
	defer func() { must(t, b.Kill()); _ = cmd.Wait() }()
	beats := func() int {
		text, _ := os.ReadFile(b.Root + "/tmp/beats")
		return len(text)
	}
	for beats() == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	must(t, b.Freeze())
	before := beats()
	time.Sleep(200 * time.Millisecond)
	if beats() != before {
		t.Error("it beats while frozen")
	}
	other, err := s.Copy("two", b.Root, homes)
	must(t, err)
	defer func() { must(t, other.Remove()) }()
	must(t, b.Thaw())
	for beats() == before {
		time.Sleep(10 * time.Millisecond)
	}
	if out, _ := shell(t, other, "wc -c </tmp/beats; echo mine >/tmp/beats; cat /tmp/beats"); out != fmt.Sprintf("%d\nmine\n", before) {
		t.Errorf("the copy holds %q, want %d bytes", out, before)
	}
	if len(other.Processes()) != 0 {
		t.Error("processes were copied")
	}
}

func TestProcessesShareADaemonsGroupUnlessTheyLeadOne(t *testing.T) {
	t.Parallel()
	_, b := newBox(t)
	in, keep := io.Pipe()
	defer func() { _ = keep.Close() }()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "exec sleep 1000")
	cmd.Stdin = in
	cmd.Env = []string{"PATH=/bin"}
	must(t, b.Start(cmd))
	out, _ := shell(t, b, `for p in /proc/[0-9]*/stat; do read -r _ _ _ _ group _ <$p; echo $group; done | sort -u | head -n 1`)
	if strings.TrimSpace(out) != "1" {
		t.Errorf("groups %q", out)
	}
	must(t, b.Kill())
	_ = keep.Close()
	_ = cmd.Wait()
}

func TestAClockMayBeAdvanced(t *testing.T) {
	t.Parallel()
	var ticks atomic.Int64
	c, stop := NewClock(func() { ticks.Add(1) })
	defer stop()
	begun := c.Now()
	c.Advance(time.Hour)
	if c.Now().Sub(begun) < time.Hour || ticks.Load() == 0 {
		t.Error("an hour did not pass")
	}
	for n := ticks.Load(); ticks.Load() == n; {
		time.Sleep(10 * time.Millisecond)
	}
	c.Stand()
	stood := c.Now()
	time.Sleep(time.Millisecond)
	if c.Advance(time.Second); c.Now() != stood.Add(time.Second) {
		t.Error("more than its advance passed")
	}
	stop()
	n := ticks.Load()
	time.Sleep(2 * grain)
	if ticks.Load() != n {
		t.Error("it ticks on")
	}
}

func TestAProgramIsFoundInside(t *testing.T) {
	t.Parallel()
	_, b := newBox(t)
	for name, want := range map[string]string{"sh": "/bin/sh", "/x/y": "/x/y", "no-such": "/no-such"} {
		if got := b.LookPath(name); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
	if filepath.Dir(b.Root) == "/" {
		t.Error("its root is the machine's")
	}
}
