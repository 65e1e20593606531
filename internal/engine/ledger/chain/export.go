package chain

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger/fault"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// longestLine bounds a line of an export, in bytes.
const longestLine = 64 << 20

// Export is the content of a file of exported events, as far as the file alone shows.
type Export struct {
	Events   []Head   // of every intact event, in the file's order
	Problems []string // empty = intact from each stream's first event to its last here
}

// ReadExport checks exported events, one CloudEvent per line, by themselves: each id must be the hash of
// its content and of the previous event, and every stream dense from its first event. Lines may be
// reformatted, not altered. Only a head shows whether a stream's end is missing: see [Export.Ends]. An
// error means that r cannot be read.
func ReadExport(r io.Reader) (Export, error) {
	var x Export
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	ends := map[[2]string]Head{} // by ledger and stream
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		e, prev, err := readExported(line)
		chain := [2]string{e.Ledger, e.Stream}
		last := ends[chain]
		if e.Seq == last.Seq+1 || err == nil && e.Seq > last.Seq { // trust an altered event's claim if it fits
			ends[chain] = e
		}
		if err != nil {
			x.problem(n, "%v", err)
			continue
		}
		x.follow(n, last, e, prev)
		x.Events = append(x.Events, e)
	}
	if err := lines.Err(); err != nil {
		return x, fault.Errorf(extensions.KindInvalid, "reading the exported events: %w", err)
	}
	return x, nil
}

func (x *Export) problem(line int, format string, args ...any) {
	x.Problems = append(x.Problems, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// follow compares an event with the previous one of its stream.
func (x *Export) follow(line int, last, e Head, prev string) {
	switch {
	case last.Seq == 0 && e.Seq > 1:
		x.problem(line, "the file begins with event %d of stream %q: earlier events are missing", e.Seq, e.Stream)
	case e.Seq == last.Seq+1 && prev != last.Hash:
		x.problem(line, "event %d of stream %q did not follow event %d: one of them belongs to another history", e.Seq, e.Stream,
			last.Seq)
	case e.Seq <= last.Seq:
		x.problem(line, "event %d of stream %q comes after event %d: the order was changed, or the event is duplicated", e.Seq, e.Stream,
			last.Seq)
	case e.Seq > last.Seq+1:
		x.problem(line, "event %d of stream %q follows event %d: the events in between are missing", e.Seq, e.Stream, last.Seq)
	}
}

// CompareHeads compares the ends of the export's streams with heads of the same ledgers from elsewhere: events up
// to each head must be present.
func (x Export) CompareHeads(heads []Head) (problems []string) {
	last := map[[2]string]int64{}
	ledgers := map[string]bool{}
	for _, e := range x.Events {
		chain := [2]string{e.Ledger, e.Stream}
		last[chain] = max(last[chain], e.Seq)
		ledgers[e.Ledger] = true
	}
	for _, h := range slices.SortedFunc(slices.Values(heads), func(a, b Head) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(b.Seq, a.Seq))
	}) {
		chain := [2]string{h.Ledger, h.Stream}
		end, here := last[chain]
		if !here || end >= h.Seq {
			continue
		}
		problems = append(problems, fmt.Sprintf("the file ends with event %d of stream %q, which continues to event %d: the end was cut off, or "+
			"came later", end, h.Stream, h.Seq))
		last[chain] = h.Seq // once per stream
	}
	return problems
}

// readExported checks one event by itself. The head of an altered one is the place that it claims.
func readExported(line []byte) (h Head, prev string, err error) {
	if err := noTwins(json.NewDecoder(bytes.NewReader(line))); err != nil {
		return h, "", err
	}
	e, ledger, err := ParseEvent(line)
	if err != nil {
		var claims struct{ ID, Source, Stream, Sequence string }
		if json.Unmarshal(line, &claims) == nil {
			h.Ledger, h.Stream, h.Hash = strings.TrimPrefix(claims.Source, sourcePrefix), claims.Stream, claims.ID
			h.Seq, _ = strconv.ParseInt(claims.Sequence, 10, 64) // 0 if it claims none
		}
		return h, "", err
	}
	return Head{Ledger: ledger, Stream: e.Stream, Seq: e.Seq, Hash: e.ID}, e.PrevHash, nil
}

// noTwins refuses an object that names a member twice: readers differ in which one they take.
func noTwins(dec *json.Decoder) error {
	dec.UseNumber()
	for {
		if err := value(dec); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("it is no event: %w", err)
		}
	}
}

func value(dec *json.Decoder) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				return err
			}
			text := fmt.Sprint(name)
			if seen[text] {
				return fmt.Errorf("it names %q twice", text)
			}
			seen[text] = true
		}
		if err := value(dec); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}
