package bench

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest"
)

// sample is what one phase of one side took in each round.
type sample struct {
	took        []time.Duration
	connections []int
	sessions    []int
	failures    []error
}

// BenchmarkHosts prints apply, refresh and destroy of 1, 10 and 50 sandboxes
// of 1 and 3 services beside the floor (Docker Compose on the host itself)
// and beside Docker Compose over `docker -H ssh://`. The sides take turns in
// every round, so that a busy machine slows all of them. The host is registered
// beforehand, and times of Terraform are net of the same command over nothing
// but that host. SANDBOXER_BENCH_SIZES (default
// "1,10,50"), SANDBOXER_BENCH_SERVICES ("1,3") and SANDBOXER_BENCH_ROUNDS (3)
// change how much is done.
func BenchmarkHosts(b *testing.B) {
	hosttest.Docker(b)
	image := hosttest.Image(b)
	for _, services := range list(b, "SANDBOXER_BENCH_SERVICES", "1,3") {
		for _, n := range list(b, "SANDBOXER_BENCH_SIZES", "1,10,50") {
			b.Run(fmt.Sprintf("services=%d/sandboxes=%d", services, n), func(b *testing.B) {
				host := hosttest.SSHD(b)
				file, withSubnet := stack(b, services, image)
				run := fmt.Sprintf("bench%d", os.Getpid())
				compare(b, host, n, []side{
					&composeSide{label: "floor", file: withSubnet, run1: run, net: 230},
					&composeSide{label: "docker -H ssh", file: withSubnet, run1: run, env: sshEnv(b, host, host.Port), net: 231},
					newSandboxerSide(b, "sandboxer", host, host.Port, file),
				})
			})
		}
	}
}

// BenchmarkFarHost is ten sandboxes of three services with 50 ms of round
// trip added in front of the host's sshd.
func BenchmarkFarHost(b *testing.B) {
	hosttest.Docker(b)
	image := hosttest.Image(b)
	host := hosttest.SSHD(b)
	addr, _ := hosttest.DelayProxy(b, host.Addr, 50*time.Millisecond)
	port, err := strconv.Atoi(addr[strings.LastIndexByte(addr, ':')+1:])
	if err != nil {
		b.Fatal(err)
	}
	file, withSubnet := stack(b, 3, image)
	run := fmt.Sprintf("far%d", os.Getpid())
	compare(b, host, 10, []side{
		&composeSide{label: "floor", file: withSubnet, run1: run, net: 230},
		&composeSide{label: "docker -H ssh", file: withSubnet, run1: run, env: sshEnv(b, host, port), net: 231},
		newSandboxerSide(b, "sandboxer", host, port, file),
	})
}

func compare(b *testing.B, host *hosttest.Server, n int, sides []side) {
	b.Helper()
	rounds := list(b, "SANDBOXER_BENCH_ROUNDS", "3")[0]
	samples := map[string]*sample{}
	for round := range rounds {
		for i := range sides {
			s := sides[(i+round)%len(sides)] // nobody is always first
			for _, phase := range []string{apply, refresh, destroy} {
				empty := time.Duration(0)
				if net, ok := s.(*sandboxerSide); ok {
					empty = net.overNothing(b, phase)
				}
				one := samples[s.name()+" "+phase]
				if one == nil {
					one = &sample{}
					samples[s.name()+" "+phase] = one
				}
				connections, asked := host.Connections(), sessions(host)
				took, err := timed(b.Context(), s, phase, n)
				one.took = append(one.took, took-empty)
				one.connections = append(one.connections, host.Connections()-connections)
				one.sessions = append(one.sessions, sessions(host)-asked)
				if err != nil {
					one.failures = append(one.failures, err)
				}
			}
			s.clear()
		}
	}
	report(b, sides, samples)
}

// overNothing times the same command where the host is registered and no
// sandbox is: a copy of the configuration with a state of its own.
func (s *sandboxerSide) overNothing(b *testing.B, phase string) time.Duration {
	b.Helper()
	text, err := os.ReadFile(s.dir + "/main.tf")
	if err != nil {
		b.Fatal(err)
	}
	bare := &sandboxerSide{dir: b.TempDir(), env: append(slices.Clone(s.env), "SANDBOXER_STATE_DIR="+b.TempDir())}
	write(b, bare.dir+"/main.tf", string(text))
	if err := bare.run(b.Context(), apply, 0); err != nil {
		b.Fatalf("registering the host: %v", err)
	}
	took, err := timed(b.Context(), bare, phase, 0)
	if err != nil {
		b.Fatalf("%s over nothing: %v", phase, err)
	}
	if err := s.registered(b); err != nil {
		b.Fatal(err)
	}
	return took
}

// registered sees to it that the host is there before what is timed.
func (s *sandboxerSide) registered(b *testing.B) error {
	b.Helper()
	return command(b.Context(), s.dir, s.env, terraform(), "apply", "-auto-approve", "-no-color", "-input=false", "-var=n=0",
		"-target=sandboxer_host.one")
}

// sessions counts the commands that sshd has started so far: the round trips.
func sessions(host *hosttest.Server) int { return strings.Count(host.Log(), "Starting session:") }

func report(b *testing.B, sides []side, samples map[string]*sample) {
	b.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "\n%-15s %-8s %10s %21s %8s %12s %10s %s\n", "side", "phase", "median", "spread", "x floor", "connections", "sessions",
		"failed rounds")
	for _, phase := range []string{apply, refresh, destroy} {
		floor := median(samples[sides[0].name()+" "+phase].took)
		for _, s := range sides {
			one := samples[s.name()+" "+phase]
			m := median(one.took)
			fmt.Fprintf(&out, "%-15s %-8s %10s %21s %8.2f %12d %10d %d\n", s.name(), phase, round(m),
				fmt.Sprintf("%s - %s", round(slices.Min(one.took)), round(slices.Max(one.took))),
				m.Seconds()/floor.Seconds(), median(one.connections), median(one.sessions), len(one.failures))
			for _, err := range one.failures[:min(1, len(one.failures))] {
				fmt.Fprintf(&out, "    %s\n", strings.ReplaceAll(err.Error(), "\n", "\n    "))
			}
			b.ReportMetric(m.Seconds(), strings.ReplaceAll(s.name(), " ", "_")+"_"+phase+"_s")
		}
	}
	// Not by b.Log, which cuts what is long.
	_, _ = os.Stdout.WriteString(out.String())
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

func median[T cmp.Ordered](v []T) T {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

func list(b *testing.B, env, standard string) []int {
	b.Helper()
	var out []int
	for _, s := range strings.Split(cmp.Or(os.Getenv(env), standard), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			b.Fatalf("%s: %q is not a list of numbers", env, s)
		}
		out = append(out, n)
	}
	return out
}
