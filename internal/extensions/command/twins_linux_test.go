package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/conformance"
)

// A twin is an example with one small edit, which breaks one promise.
var twins = map[string]struct {
	file     string
	manifest map[string]any
	old, new string
	fails    string // the check that names the fault
}{
	"mixes the streams": {"python/sandbox.py", python, `(child.stderr, b"r")`, `(child.stderr, b"o")`, "exec/streams-apart-and-live"},
	"reads one frame":   {"python/sandbox.py", python, `while len(head`, `if len(head`, "exec/stdin-1MiB"},
	"finds nothing":     {"python/sandbox.py", python, `[] if found["phase"] == "absent" else [found]`, `[]`, "core/find-finds"},
	"ends too late":     {"python/sandbox.py", python, `.timestamp() +`, `.timestamp() + 3600 +`, "core/expires-at-its-deadline"},
	"leaves its folder": {"python/sandbox.py", python, `shutil.rmtree(box.folder)`, `pass`, "core/teardown-leaves-nothing"},
	"ends what is not meant": {"shell/sandbox.sh", shell, `"$dir/labels" ||`, `"$dir/labels" || true ||`,
		"core/teardown-foreign-refused"},
	"lists what is another's": {"shell/sandbox.sh", shell, `$(text account | tr / _)`, `everybody`, "core/status-nil-lists-ours"},
}

func TestABrokenTwinFailsTheCheckThatNamesItsFault(t *testing.T) {
	t.Parallel()
	for name, twin := range twins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(examples, twin.file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), twin.old) != 1 {
				t.Fatalf("the example has %q %d times", twin.old, strings.Count(string(text), twin.old))
			}
			h := harness[conformance.TB](program(t, strings.Replace(string(text), twin.old, twin.new, 1)), twin.manifest)
			results, err := conformance.Run(t.Context(), h, conformance.Choice{AtOnce: 1, Only: []string{twin.fails}},
				func(conformance.Result) {})
			if err != nil {
				t.Fatal(err)
			}
			if len(results) != 1 || results[0].Outcome != conformance.Failed {
				t.Errorf("%+v, want a failure", results)
			}
		})
	}
}
