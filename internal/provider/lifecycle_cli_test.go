package provider

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"
)

func TestASavedPlanIsAppliedLater(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL("name = \"saved\"\nttl = \"1h\""))
	c.must("plan", "-out=p", "-no-color")
	time.Sleep(1100 * time.Millisecond) // another second, another process
	c.must("apply", "-no-color", "p")
	c.planIsEmpty()
	c.write(sandboxHCL("name = \"saved\"\nttl = \"2h\""))
	c.must("plan", "-out=p", "-no-color")
	c.must("apply", "-no-color", "p")
	c.planIsEmpty()
	c.must("plan", "-destroy", "-out=p", "-no-color")
	c.must("apply", "-no-color", "p")
	c.nothingLeft()
}

// nothingLeft fails if anything is alive or the ledger is not clean.
func (c *cli) nothingLeft() {
	c.t.Helper()
	if left := c.b.live(); len(left) > 0 {
		c.t.Errorf("%d are left: %v", len(left), left)
	}
	c.b.verify()
	report, err := c.b.engine().Sweep(context.Background(), true, nil)
	if err != nil || len(report.Orphans)+len(report.Ended)+len(report.Failures) > 0 {
		c.t.Errorf("a sweep finds something: %+v (%v)", report, err)
	}
}

func TestTenAtOnceWithTargetAndWithoutRefresh(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(`
resource "sandboxer_sandbox" "a" {
  for_each = toset([for i in range(10) : tostring(i)])
  profile  = "profile.stub"
  name     = "n-${each.key}"
  ttl      = "1h"
}
resource "sandboxer_sandbox" "b" {
  count       = 2
  profile     = "profile.stub"
  name_prefix = "c-"
}
`)
	c.apply()
	c.planIsEmpty()
	c.planIsEmpty("-refresh=false")
	if n := len(b.live()); n != 24 { // in the ledger and at the vendor
		t.Fatalf("%d alive, want 12 twice", n/2)
	}
	c.destroy("-target=sandboxer_sandbox.a[\"3\"]")
	c.apply("-target=sandboxer_sandbox.a[\"3\"]")
	c.planIsEmpty()
	c.apply("-refresh=false", "-replace=sandboxer_sandbox.a[\"4\"]")
	c.planIsEmpty()
	c.destroy("-refresh=false")
	c.nothingLeft()
}

func TestTenAtOnceOnThisMachineLeaveNothing(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	requireLocal(t)
	b := newBed(t)
	c := newCLI(t, b)
	c.write("resource \"sandboxer_sandbox\" \"a\" {\n count = 10\n profile = \"profile.quickstart\"\n name = \"ten-${count.index}\"\n ttl = " +
		"\"30m\"\n}\n")
	c.apply()
	c.planIsEmpty()
	for i := range 10 {
		b.inside(fmt.Sprintf("ten-%d", i), "sleep 1000 & echo $! > pid; kill -0 $(cat pid)")
	}
	c.planIsEmpty()
	c.destroy()
	c.nothingLeft() // the bed's end looks for processes, mounts, groups and folders
}

func TestStartedByHandItIsTheCommandLine(t *testing.T) {
	t.Parallel()
	requireTerraform(t)
	bin, err := builtProvider()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(bin, "terraform-provider-sandboxer")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Available Commands") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A state that Terraform wrote shows that the end of the ledger is still there.
func TestTheReceiptsOfAStateAreCheckedAgainstTheLedger(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "p"`))
	c.apply()
	bin, err := builtProvider()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(state string) (string, error) {
		cmd := exec.Command(filepath.Join(bin, "terraform-provider-sandboxer"), "ledger", "verify", "--receipts",
			filepath.Join(state, "terraform.tfstate"),
			"--state-dir", b.state, "--catalog", b.catalog, "--account", "acme/web")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := verify(c.dir)
	if err != nil || !strings.Contains(out, "sound") || strings.Contains(out, "pin no head") || strings.Contains(out, "has no sandbox") {
		t.Errorf("%v\n%s", err, out)
	}
	other := newBed(t)
	there := newCLI(t, other)
	there.write(sandboxHCL(`name = "p"`))
	there.apply()
	if out, err := verify(there.dir); err == nil || !strings.Contains(out, "another ledger") {
		t.Errorf("a state of elsewhere: %v\n%s", err, out)
	}
	there.destroy()
	c.destroy()
}

func TestTwoAppliesAtOnceFromTwoFolders(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one, two := newCLI(t, b), newCLI(t, b)
	one.write("resource \"sandboxer_sandbox\" \"a\" {\n count = 4\n profile = \"profile.stub\"\n name = \"one-${count.index}\"\n}\n")
	two.write("resource \"sandboxer_sandbox\" \"a\" {\n count = 4\n profile = \"profile.stub\"\n name = \"two-${count.index}\"\n}\n")
	both := func(f func(*cli)) {
		var wg sync.WaitGroup
		for _, c := range []*cli{one, two} {
			wg.Go(func() { f(c) })
		}
		wg.Wait()
	}
	both(func(c *cli) {
		if out, code := c.try(nil, "apply", "-auto-approve", "-no-color"); code != 0 {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
	one.planIsEmpty()
	two.planIsEmpty()
	both(func(c *cli) {
		if out, code := c.try(nil, "destroy", "-auto-approve", "-no-color"); code != 0 {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
	one.nothingLeft()
}

func TestAliasesHaveAccountsOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.built = builtProvider // Terraform starts one for each block
	c.write(fmt.Sprintf(`
provider "sandboxer" {
  alias     = "other"
  state_dir = %q
  catalog   = [%q]
  account   = "acme/api"
}
resource "sandboxer_sandbox" "a" {
  profile = "profile.stub"
  name    = "same"
}
resource "sandboxer_sandbox" "b" {
  provider = sandboxer.other
  profile  = "profile.stub"
  name     = "same"
}
`, b.state, b.catalog))
	c.apply()
	c.planIsEmpty()
	if got := c.stateOf("sandboxer_sandbox.b", "account"); got != "acme/api" {
		t.Errorf("account %v", got)
	}
	c.destroy()
	c.nothingLeft()
}

func TestAnotherMachineReadsAndDestroysWithAnEmptyLedger(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	here := newCLI(t, b)
	body := sandboxHCL("name = \"far\"\nttl = \"1h\"") +
		"resource \"sandboxer_snapshot\" \"s\" {\n sandbox_id = sandboxer_sandbox.a.id\n name = \"kept\"\n}\n"
	here.write(body)
	here.apply()
	other := b.elsewhere()
	there := newCLI(t, other)
	there.write(body)
	state, err := os.ReadFile(filepath.Join(here.dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(there.dir, "terraform.tfstate"), state, 0o600); err != nil {
		t.Fatal(err)
	}
	there.planIsEmpty()
	there.destroy()
	objects, err := b.vendor().Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GoneAt.IsZero() {
			t.Errorf("%s is still there", o.Name)
		}
	}
	if snaps, err := b.vendor().Snapshots(); err != nil || len(snaps) > 0 {
		t.Errorf("snapshots left: %v %v", snaps, err)
	}
}

func TestAHostIsRegisteredAgainOnAnotherMachine(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	here := newCLI(t, b)
	requireLocal(t)
	here.write(hostHCL)
	here.apply()
	other := newBed(t)
	there := newCLI(t, other)
	there.write(hostHCL)
	state, err := os.ReadFile(filepath.Join(here.dir, "terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(there.dir, "terraform.tfstate"), state, 0o600); err != nil {
		t.Fatal(err)
	}
	there.apply()
	if _, err := other.engine().LookupHost(context.Background(), "here"); err != nil {
		t.Errorf("not registered again: %v", err)
	}
	there.planIsEmpty()
}

func TestPlanAndReadWriteNothing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "p"`) + "data \"sandboxer_quote\" \"q\" {\n profile = \"profile.stub\"\n}\n")
	c.must("plan", "-no-color")
	if _, err := os.Stat(b.state); !os.IsNotExist(err) {
		t.Errorf("a plan made the state folder: %v", err)
	}
	c.apply()
	before, _, err := verifyLedger(context.Background(), b.engine())
	if err != nil {
		t.Fatal(err)
	}
	c.planIsEmpty()
	c.must("refresh", "-no-color")
	if after, _, err := verifyLedger(context.Background(), b.engine()); err != nil || after != before {
		t.Errorf("%d events before plan and refresh, %d after (%v)", before, after, err)
	}
	c.destroy()
}

// eventually waits for a condition; its bound only ends a broken test.
func (b *bed) eventually(what string, ok func() bool) {
	b.t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	b.t.Fatalf("never: %s", what)
}

var importBlockPattern = regexp.MustCompile(`import \{\s+to = sandboxer_sandbox\.NAME[^\n]*\n\s+id = "(sbx-[a-z2-7]{20})"\s+\}`)

// Every step of create and destroy, each killed through Terraform, on the stub
// and on this machine.
func TestKillsThroughTerraformConverge(t *testing.T) {
	t.Parallel()
	points := append(failpointtest.Names("engine.create."), failpointtest.Names("engine.destroy.")...)
	if len(points) < 10 {
		t.Fatalf("only %d steps can be killed: %v", len(points), points)
	}
	for _, profile := range []string{"profile.stub", "profile.quickstart"} {
		for _, point := range points {
			t.Run(profile+"/"+point, func(t *testing.T) {
				t.Parallel()
				requireTerraform(t)
				if profile == "profile.quickstart" {
					requireLocal(t)
				}
				b := newBed(t)
				c := newCLI(t, b)
				body := replaced(sandboxHCL("name = \"k\"\nttl = \"1h\""), "profile.stub", profile)
				c.write(body)
				destroying := strings.Contains(point, "destroy")
				verb := "apply"
				if destroying {
					c.apply()
					verb = "destroy"
				}
				if out, code := c.try(c.killedAt(point), verb, "-auto-approve", "-no-color"); code == 0 {
					t.Fatalf("the killed %s succeeded:\n%s", verb, out)
				}
				if left, err := filepath.Glob(filepath.Join(b.root, "plugin*")); err != nil || len(left) != 1 && runtime.GOOS != "windows" {
					t.Errorf("of its sockets, %q are in the folder of the test; %v", left, err)
				}
				if destroying {
					c.destroy() // may find it gone and change nothing: reading settles nothing
				}
				c.converge(body)
				c.destroy()
				c.nothingLeft()
			})
		}
	}
}

// What tests kill the program with is no part of it.
func TestAReleaseCannotBeArmed(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "unarmed"`))
	for _, verb := range []string{"apply", "destroy"} {
		point := map[string]string{"apply": "engine.create.begun", "destroy": "engine.destroy.begun"}[verb]
		if out, code := c.try([]string{failpointtest.Env + "=" + point + ":kill"}, verb, "-auto-approve", "-no-color"); code != 0 {
			t.Errorf("%s: exit %d\n%s", verb, code, out)
		}
	}
	c.nothingLeft()
	for name, built := range map[string]func() (string, error){"release": builtProvider, "armed": armedProvider} {
		dir, err := built()
		if err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(filepath.Join(dir, providerName))
		if err != nil {
			t.Fatal(err)
		}
		if knows := bytes.Contains(program, []byte(failpointtest.Env)); knows != (name == "armed") {
			t.Errorf("%s knows the variable: %t", name, knows)
		}
	}
}

// converge applies until the sandbox is there: at once, or after the import
// that the refusal prints.
func (c *cli) converge(body string) {
	c.t.Helper()
	out, code := c.try(nil, "apply", "-auto-approve", "-no-color")
	if code != 0 {
		m := importBlockPattern.FindStringSubmatch(out)
		if m == nil {
			c.t.Fatalf("neither converged nor printed an import block:\n%s", out)
		}
		block := strings.Replace(m[0], "sandboxer_sandbox.NAME", addr, 1)
		c.write(body + block + "\n")
		c.apply()
		c.write(body)
	}
	c.planIsEmpty()
	sb := c.b.only()
	if got := c.stateOf(addr, "id"); got != string(sb.ID) {
		c.t.Errorf("the state has %v, the ledger %s", got, sb.ID)
	}
	if live := c.b.live(); sb.Extension == "ext.saas-stub" && len(live) != 2 {
		c.t.Errorf("want one sandbox in ledger and vendor, have %v", live)
	}
}

func TestAnEditedProfileOnlyWarnsAndAStateMoveKeepsEverything(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "e"`))
	c.apply()
	b.profile("profile.stub", "extends: profile.base\nextension: ext.saas-stub\nisolation: { level: container }\nresources: { cpu: 2, "+
		"memory_mb: 512 }\n")
	out, code := c.try(nil, "plan", "-detailed-exitcode", "-no-color")
	if code != 0 || !strings.Contains(out, "Warning") || !strings.Contains(strings.Join(strings.Fields(out), " "), "resolves differently") {
		t.Errorf("exit %d, want a warning and no change:\n%s", code, out)
	}
	c.must("state", "mv", addr, "sandboxer_sandbox.moved")
	c.write(strings.Replace(sandboxHCL(`name = "e"`), `"a"`, `"moved"`, 1))
	c.planIsEmpty()
	c.destroy()
	c.nothingLeft()
}

func TestAMovedBlockAndARemovedBlockWork(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	c := newCLI(t, b)
	c.write(sandboxHCL(`name = "m"`))
	c.apply()
	id := c.stateOf(addr, "id")
	moved := strings.Replace(sandboxHCL(`name = "m"`), `"a"`, `"z"`, 1)
	c.write(moved + "moved {\n  from = sandboxer_sandbox.a\n  to = sandboxer_sandbox.z\n}\n")
	c.apply()
	if got := c.stateOf("sandboxer_sandbox.z", "id"); got != id {
		t.Errorf("the move made %v of %v", got, id)
	}
	c.write("removed {\n  from = sandboxer_sandbox.z\n  lifecycle { destroy = false }\n}\n")
	c.apply()
	if b.only().State != stateReady {
		t.Error("the removed block ended it")
	}
}
