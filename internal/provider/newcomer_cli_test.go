package provider

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// An adapter that the project does not have is one folder and one line of the list: it passes the conformance suite,
// and Terraform creates and destroys with it.
func TestANewAdapterIsOneFolderAndOneLine(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	list, err := os.ReadFile("../extensions/all/all.go")
	if err != nil {
		t.Fatal(err)
	}
	const first = "return []extensions.Extension{\n"
	line := strings.Replace(string(list), first, first+"\t\tnewcomer.New(),\n", 1)
	line = strings.Replace(line, "import (\n", "import (\n\t\"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/newcomer\"\n", 1)
	if line == string(list) {
		t.Fatal("the list of adapters has another form")
	}
	const folder = "internal/extensions/newcomer/"
	at, err := overlay("newcomer", map[string]string{
		folder + "newcomer.go": "testdata/newcomer/newcomer.go", folder + "newcomer_test.go": "testdata/newcomer/newcomer_test.go",
		"internal/extensions/all/all.go": b.write("all.go", line),
	})
	if err != nil {
		t.Fatal(err)
	}

	suite := filepath.Join(b.root, "newcomer.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", at, "-o", suite, "../../"+folder).CombinedOutput(); err != nil {
		t.Fatalf("building the suite: %v\n%s", err, out)
	}
	conformance := exec.Command(suite)
	conformance.Dir = b.root
	conformance.Env = append(os.Environ(), "SANDBOXER_NO_SKIP=")
	if out, err := conformance.CombinedOutput(); err != nil {
		t.Errorf("the conformance suite: %v\n%s", err, out)
	}

	c.built = sync.OnceValues(func() (string, error) { return build("newcomer", "-overlay", at) })
	b.write("catalog/extensions/ext.newcomer.yaml", "id: ext.newcomer\nhandler: newcomer\ntitle: New here\n")
	b.profile("profile.newcomer", "extends: profile.base\nextension: ext.newcomer\nisolation: { level: none }\n")
	c.write("resource \"sandboxer_sandbox\" \"a\" {\n  profile = \"profile.newcomer\"\n  ttl     = \"1h\"\n}\n")
	c.apply()
	if got := c.stateOf("sandboxer_sandbox.a", "extension"); got != "ext.newcomer" {
		t.Errorf("it runs at %v", got)
	}
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(b.state, "newcomer", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if len(files()) != 1 {
		t.Errorf("the place has %v, want one sandbox", files())
	}
	c.planIsEmpty()
	c.destroy()
	if len(files()) != 0 {
		t.Errorf("the place still has %v", files())
	}
}
