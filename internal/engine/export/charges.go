package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"io"
	"strings"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/ledger"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Format is an output format of charges.
type Format string

// Formats.
const (
	FOCUS Format = "focus" // FOCUS 1.2, as CSV
	CSV   Format = "csv"   // RFC 4180, with a header
	JSON  Format = "json"  // one array, one object per line
)

// Charges writes the settled charges that the filter selects, one per row, and returns their number.
// Running sandboxes have no charges yet. Its memory is bounded. An unknown format is KindInvalid; other
// errors are the ledger's and the writer's.
func Charges(ctx context.Context, l Ledger, f ledger.UsageFilter, format Format, w io.Writer) (n int64, err error) {
	out := bufio.NewWriter(w)
	var to table
	switch format {
	case FOCUS:
		to = newCSVTable(out, focusColumns())
	case CSV:
		to = newCSVTable(out, plainColumns())
	case JSON:
		to = &jsonTable{w: out, columns: plainColumns()}
	default:
		return 0, extensions.Errorf(extensions.KindInvalid, "charges cannot be written as %q", extensions.Clean(string(format), 40)).
			WithRemedy("use focus, csv or json")
	}
	if err := to.begin(); err != nil {
		return 0, err
	}
	err = l.EachCharge(ctx, f, func(c ledger.ChargeRow) error {
		n++
		return to.row(c)
	})
	if err == nil {
		err = to.end()
	}
	if err == nil {
		err = out.Flush()
	}
	return n, err
}

// table writes rows in one format.
type table interface {
	begin() error
	row(c ledger.ChargeRow) error
	end() error
}

// form is the form of a column's values.
type form int

const (
	text    form = iota // free text; "" = none
	decimal             // digits, a point, an optional sign; text in JSON, too
	integer             // a number in JSON
	truth               // true or false
	exact               // text that must not be altered
)

// column is one column of a table.
type column struct {
	name  string
	form  form
	value func(ledger.ChargeRow) string
}

type csvTable struct {
	w       *csv.Writer
	columns []column
	cells   []string
}

func newCSVTable(w io.Writer, columns []column) *csvTable {
	t := &csvTable{w: csv.NewWriter(w), columns: columns, cells: make([]string, len(columns))}
	t.w.UseCRLF = true // RFC 4180
	return t
}

func (t *csvTable) begin() error {
	for i, c := range t.columns {
		t.cells[i] = c.name
	}
	return t.w.Write(t.cells)
}

func (t *csvTable) row(c ledger.ChargeRow) error {
	for i, col := range t.columns {
		t.cells[i] = col.value(c)
		if col.form == text {
			t.cells[i] = inert(t.cells[i])
		}
	}
	return t.w.Write(t.cells)
}

func (t *csvTable) end() error {
	t.w.Flush()
	return t.w.Error()
}

// inert keeps a spreadsheet from reading text as a formula: it adds an apostrophe, which spreadsheets do
// not show.
func inert(s string) string {
	if lead := strings.TrimLeft(s, " "); lead != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(lead)[0]) {
		return "'" + s
	}
	return s
}

type jsonTable struct {
	w       *bufio.Writer
	columns []column
	rows    int
}

func (t *jsonTable) begin() error { return t.w.WriteByte('[') }

func (t *jsonTable) row(c ledger.ChargeRow) error {
	var b strings.Builder
	if t.rows++; t.rows > 1 {
		b.WriteByte(',')
	}
	b.WriteString("\n{")
	for i, col := range t.columns {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := encode(col.name)
		if err != nil {
			return err
		}
		value, err := col.json(c)
		if err != nil {
			return err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	_, err := t.w.WriteString(b.String())
	return err
}

func (col column) json(c ledger.ChargeRow) ([]byte, error) {
	v := col.value(c)
	switch {
	case v == "":
		return []byte("null"), nil
	case col.form == integer, col.form == truth:
		return []byte(v), nil
	}
	return encode(v)
}

func (t *jsonTable) end() error {
	if t.rows > 0 {
		if err := t.w.WriteByte('\n'); err != nil {
			return err
		}
	}
	_, err := t.w.WriteString("]\n")
	return err
}
