package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// BenchmarkPlan prints what a plan asks of its reader and of the machine:
// the lines of examples/ten-sandboxes without its warnings, the most lines of one
// sandbox, the bytes of state that a sandbox takes with all that is kept of it,
// and how long a plan of 150 unchanged sandboxes takes beside 150 terraform_data.
func BenchmarkPlan(b *testing.B) {
	b.Run("ten-sandboxes", func(b *testing.B) {
		c := newCLI(b, newBed(b))
		c.built = builtProvider
		if err := os.CopyFS(c.dir, os.DirFS("../../examples/ten-sandboxes")); err != nil {
			b.Fatal(err)
		}
		c.env = append(c.env, "SANDBOXER_STATE_DIR="+c.b.state)
		for b.Loop() {
			whole, most := planLines(c.must("plan", "-no-color", "-input=false"))
			b.ReportMetric(float64(whole), "lines")
			b.ReportMetric(float64(most), "lines/sandbox")
		}
	})
	for name, hosts := range map[string]string{"stub": "", "host": "\n  hosts = [sandboxer_host.here.ref]"} {
		b.Run("state/"+name, func(b *testing.B) {
			bed := newBed(b)
			c := newCLI(b, bed)
			body := func(n int) string {
				text := "resource \"sandboxer_host\" \"here\" {\n  name  = \"here\"\n  local = true\n}\n"
				profile := "profile.stub"
				if hosts != "" {
					profile = "profile.quickstart"
				}
				return text + fmt.Sprintf("resource \"sandboxer_sandbox\" \"a\" {\n  count = %d\n  profile = %q\n  ttl = \"1h\"%s\n}\n", n, profile,
					hosts)
			}
			for b.Loop() {
				c.write(body(1))
				c.apply()
				one := c.stateSize()
				c.write(body(6))
				c.apply()
				b.ReportMetric(float64(c.stateSize()-one)/5, "bytes/sandbox")
				c.destroy()
			}
		})
	}
	b.Run("150-unchanged", func(b *testing.B) {
		const n = 150
		bed := newBed(b)
		ours, theirs := newCLI(b, bed), newCLI(b, bed)
		ours.write(fmt.Sprintf("resource \"sandboxer_sandbox\" \"a\" {\n  count = %d\n  profile = \"profile.stub\"\n  ttl = \"12h\"\n}\n", n))
		ours.apply("-parallelism=4")
		if err := os.WriteFile(filepath.Join(theirs.dir, "main.tf"),
			fmt.Appendf(nil, "resource \"terraform_data\" \"a\" {\n  count = %d\n  input = count.index\n}\n", n), 0o600); err != nil {
			b.Fatal(err)
		}
		theirs.apply()
		var here, there time.Duration
		for b.Loop() {
			here += timed(func() { ours.must("plan", "-no-color", "-input=false") })
			there += timed(func() { theirs.must("plan", "-no-color", "-input=false") })
		}
		b.ReportMetric(here.Seconds()/float64(b.N), "s/plan")
		b.ReportMetric(there.Seconds()/float64(b.N), "s/terraform_data")
		b.ReportMetric(here.Seconds()/there.Seconds(), "ratio")
		ours.destroy()
	})
}

var (
	willBe  = regexp.MustCompile(`(?m)^  # sandboxer_sandbox\.`)
	planSum = regexp.MustCompile(`(?m)^Plan: `)
)

// planLines counts the lines of a plan without what comes after its sum, and
// those of its longest sandbox.
func planLines(out string) (whole, most int) {
	from := strings.Index(out, "Terraform will perform")
	to := planSum.FindStringIndex(out)
	if from < 0 || to == nil {
		return 0, 0
	}
	out = out[from:to[0]]
	starts := willBe.FindAllStringIndex(out, -1)
	for i, at := range starts {
		end := len(out)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		most = max(most, strings.Count(strings.TrimSpace(out[at[0]:end]), "\n")+1)
	}
	return strings.Count(out, "\n"), most
}

func (c *cli) stateSize() int64 {
	c.t.Helper()
	info, err := os.Stat(filepath.Join(c.dir, "terraform.tfstate"))
	if err != nil {
		c.t.Fatal(err)
	}
	return info.Size()
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
