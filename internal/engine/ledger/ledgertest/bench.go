package ledgertest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/sqlstore"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Benchmark measures transactions that reserve, and lives of six transactions with two reservations and their
// settlement, with 1, 4 and 16 processes on one ledger: the number per second, and the duration in the median, at the
// 99th percentile and at worst, including the wait for others.
func Benchmark(b *testing.B, address NewAddress) {
	for _, n := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("transactions/processes=%d", n), func(b *testing.B) { crowded(b, address(b), n, "bench", "tx/s") })
	}
	for _, n := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("lifecycles/processes=%d", n), func(b *testing.B) { crowded(b, address(b), n, "bench-lives", "lives/s") })
	}
}

// crowded divides b.N turns of the role among processes; rate names the reported number per second.
func crowded(b *testing.B, address string, processes int, role, rate string) {
	l := open(b, address, sqlstore.Options{})
	funded(b, l)
	each := max(1, b.N/processes)
	type worker struct {
		in  io.WriteCloser
		out *bufio.Reader
	}
	var workers []worker
	for i := range processes {
		cmd := child(b, role, address, i, each, "")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := cmd.Wait(); err != nil {
				b.Errorf("a process failed: %v", err)
			}
		})
		w := worker{in, bufio.NewReader(out)}
		if line, err := w.out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "ledger") {
			b.Fatalf("a process is not ready: %q, %v", line, err)
		}
		workers = append(workers, w)
	}
	b.ResetTimer()
	start := time.Now()
	for _, w := range workers {
		_ = w.in.Close() // the starting shot
	}
	var took []time.Duration
	for _, w := range workers {
		all, err := io.ReadAll(w.out)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range strings.Fields(string(all)) {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Duration(n))
		}
	}
	elapsed := time.Since(start)
	b.StopTimer()
	if len(took) != each*processes {
		b.Fatalf("%d turns instead of %d", len(took), each*processes)
	}
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/elapsed.Seconds(), rate)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "slowest-ms")
	verified(b, l)
}

// bench begins count sandboxes once its standard input ends, and completes their lives if whole. It prints the duration
// of each in nanoseconds.
func (w *worker) bench(count int, whole bool) error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var out strings.Builder
	for i := range count {
		id, err := extensions.NewID(nil)
		if err != nil {
			return err
		}
		b := want(id, w.holder, fmt.Sprint(w.seed, "-", i))
		b.Reserve = ownCredit(5000)
		start := time.Now()
		if whole {
			w.silent = true
			err = w.live(fmt.Sprint(w.seed, "-", i))
		} else {
			_, err = w.l.Begin(w.ctx, b)
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(&out, time.Since(start).Nanoseconds())
	}
	_, err := os.Stdout.WriteString(out.String())
	return err
}
