package composessh

import (
	"maps"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/shtext/shtexttest"
)

// operations are all scripts as they are sent.
func operations() map[string]string {
	return map[string]string{
		"create": script(createFiles(true, true, true)...), "create-plain": script(createFiles(false, false, false)...), "reaper": script(reaperFiles...), "teardown": script(teardownFiles...), "wait": script(waitFiles...),
		"status": script(statusFiles...), "status-guarded": script(guardedStatusFiles...), "find": script(findFiles...),
		"change": script(changeFiles...), "pause": script(pauseFiles...),
		"snapshot": script(snapshotFiles...), "keep": script(keepFiles...), "canfork": script(canForkFiles...),
	}
}

// inShells runs a script after the library in each shell, and wants it to print
// the same.
func inShells(t *testing.T, files []string, body, want string) {
	t.Helper()
	shtexttest.Prints(t, "root=$PWD account=acme/web\nprogress() { :; }\n"+script(files...)+body, want)
}

func TestScriptsArePOSIX(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: starts no other processes")
	}
	all := operations()
	maps.Copy(all, shtexttest.Programs(t, scripts[0]))
	shtexttest.POSIX(t, all)
}

func TestCommentsStayBehind(t *testing.T) {
	t.Parallel()
	for name, text := range operations() {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "\t") {
				t.Errorf("%s is sent with the line %q", name, line)
			}
		}
	}
}
