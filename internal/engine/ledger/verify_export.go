package ledger

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

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// longestLine bounds a line of an export, in bytes.
const longestLine = 64 << 20

// Export is what a file of exported events holds, as far as the file alone
// tells.
type Export struct {
	Events   []Head   // of every event that is as it was exported, in the file's order
	Problems []string // empty = whole from each stream's first event to its last here
}

// ReadExport checks exported events, one CloudEvent a line, by themselves: each
// id is the hash of its content and of the event before, and every stream is
// dense from its first event. That a stream's end is missing shows by a head
// alone: see [Export.Ends]. Lines may be formatted anew, not altered. The error
// is for what cannot be read.
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
		if e.Seq == last.Seq+1 || err == nil && e.Seq > last.Seq { // what an altered one claims is believed where it fits
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
		return x, failuref(extensions.KindInvalid, "reading the exported events: %w", err)
	}
	return x, nil
}

func (x *Export) problem(line int, format string, args ...any) {
	x.Problems = append(x.Problems, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// follow compares an event with the one of its stream that came before it.
func (x *Export) follow(line int, last, e Head, prev string) {
	switch {
	case last.Seq == 0 && e.Seq > 1:
		x.problem(line, "the file begins with event %d of stream %q: those before it are missing", e.Seq, e.Stream)
	case e.Seq == last.Seq+1 && prev != last.Hash:
		x.problem(line, "event %d of stream %q is not the one that followed event %d here: one of them is of another history", e.Seq, e.Stream, last.Seq)
	case e.Seq <= last.Seq:
		x.problem(line, "event %d of stream %q comes after event %d: the order was changed, or it is here twice", e.Seq, e.Stream, last.Seq)
	case e.Seq > last.Seq+1:
		x.problem(line, "event %d of stream %q follows event %d: what was in between is missing", e.Seq, e.Stream, last.Seq)
	}
}

// Ends compares where the export's streams end with heads, told elsewhere, of
// the same ledgers: events up to each head must be here.
func (x Export) Ends(heads []Head) (problems []string) {
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
		problems = append(problems, fmt.Sprintf("the file ends with event %d of stream %q, which goes on to event %d: the end was cut off, or came later", end, h.Stream, h.Seq))
		last[chain] = h.Seq // once a stream
	}
	return problems
}

// readExported checks one event by itself. Of one that was altered, the head
// says where it claims to belong.
func readExported(line []byte) (h Head, prev string, err error) {
	if err := noTwins(json.NewDecoder(bytes.NewReader(line))); err != nil {
		return h, "", err
	}
	e, ledger, err := ParseEvent(line)
	if err != nil {
		var claims struct{ ID, Source, Stream, Sequence string }
		if json.Unmarshal(line, &claims) == nil {
			h.Ledger, h.Stream, h.Hash = strings.TrimPrefix(claims.Source, sourcePrefix), claims.Stream, claims.ID
			h.Seq, _ = strconv.ParseInt(claims.Sequence, 10, 64) // 0 where it claims none
		}
		return h, "", err
	}
	return Head{Ledger: ledger, Stream: e.Stream, Seq: e.Seq, Hash: e.ID}, e.PrevHash, nil
}

// noTwins refuses an object that names a member twice: readers differ in which
// of the two they take.
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
