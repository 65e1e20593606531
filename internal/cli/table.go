package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// screen is what a table is printed on.
type screen struct {
	io.Writer
	width int  // columns of the terminal; 0 = as many as needed
	wide  bool // every column was asked for
}

func screenOf(w io.Writer) screen {
	if s, ok := w.(screen); ok {
		return s
	}
	return screen{Writer: w}
}

// wide adds more to a row where every column was asked for.
func wide(w io.Writer, row []string, more ...string) []string {
	if screenOf(w).wide {
		return append(row, more...)
	}
	return row
}

const (
	gap = 2 // between columns
	// leastCut is the width below which a column is not cut, so that a cut cell still says something.
	leastCut = 10
	// leastText is the width below which text is not wrapped beside its name.
	leastText = 20
	maxCell   = 200 // characters
)

// grid prints rows in aligned columns; the first row is the heading.
func grid(w io.Writer, rows [][]string) error { return columns(w, -1, rows) }

// columns is grid with the columns from index from onward aligned to the right; -1 = none.
//
// On a terminal that is too narrow, cells are wrapped, then long words cut in all columns but the first and the
// numbers. Where even that does not fit, the rows are printed one below the other.
func columns(w io.Writer, from int, rows [][]string) error {
	s := screenOf(w)
	clean := cleaned(rows)
	t := table{rows: clean, from: from}
	t.measure()
	if s.width > 0 && !t.fit(s.width) {
		return stack(s, clean)
	}
	return t.print(s)
}

func cleaned(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		out[i] = make([]string, len(row))
		for j, c := range row {
			out[i][j] = orDash(extensions.Clean(c, maxCell))
		}
	}
	return out
}

type table struct {
	rows  [][]string
	from  int
	width []int // of each column
	least []int // width of its longest word
}

func (t *table) measure() {
	for _, row := range t.rows {
		for j, c := range row {
			if j == len(t.width) {
				t.width, t.least = append(t.width, 0), append(t.least, 0)
			}
			t.width[j] = max(t.width[j], ansi.StringWidth(c))
			for word := range strings.FieldsSeq(c) {
				t.least[j] = max(t.least[j], ansi.StringWidth(word))
			}
		}
	}
}

func (t *table) numbers(j int) bool { return t.from >= 0 && j >= t.from }

// fit narrows the columns to a width, and reports whether it could.
func (t *table) fit(width int) bool {
	for j := range t.width {
		if t.numbers(j) {
			t.least[j] = t.width[j]
		}
	}
	if t.narrow(width) {
		return true
	}
	for j := 1; j < len(t.least); j++ {
		if !t.numbers(j) {
			t.least[j] = min(t.least[j], leastCut)
		}
	}
	return t.narrow(width)
}

// narrow takes from the widest column that has more than its least, until all fit.
func (t *table) narrow(width int) bool {
	for total := t.total(); total > width; total-- {
		widest := -1
		for j := range t.width {
			if t.width[j] > t.least[j] && (widest < 0 || t.width[j] > t.width[widest]) {
				widest = j
			}
		}
		if widest < 0 {
			return false
		}
		t.width[widest]--
	}
	return true
}

func (t *table) total() int {
	n := gap * (len(t.width) - 1)
	for _, w := range t.width {
		n += w
	}
	return n
}

func (t *table) print(w io.Writer) error {
	for _, row := range t.rows {
		cells := make([][]string, len(row))
		height := 1
		for j, c := range row {
			cells[j] = []string{c}
			if ansi.StringWidth(c) > t.width[j] {
				cells[j] = strings.Split(ansi.Wordwrap(c, t.width[j], " "), "\n")
			}
			height = max(height, len(cells[j]))
		}
		for line := range height {
			if _, err := fmt.Fprintln(w, t.line(cells, line)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *table) line(cells [][]string, line int) string {
	var b strings.Builder
	for j := range cells {
		c := ""
		if line < len(cells[j]) {
			c = ansi.Truncate(cells[j][line], t.width[j], "…")
		}
		pad := strings.Repeat(" ", max(t.width[j]-ansi.StringWidth(c), 0))
		if t.numbers(j) {
			c = pad + c
		} else {
			c += pad
		}
		b.WriteString(c + strings.Repeat(" ", gap))
	}
	return strings.TrimRight(b.String(), " ")
}

// stack prints each row as lines of heading and cell.
func stack(s screen, rows [][]string) error {
	for i, row := range rows[1:] {
		lines := make([][2]string, len(row))
		for j, c := range row {
			lines[j] = [2]string{rows[0][j], c}
		}
		if i > 0 {
			if _, err := fmt.Fprintln(s); err != nil {
				return err
			}
		}
		if err := facts(s, lines); err != nil {
			return err
		}
	}
	return nil
}

// facts prints name/value lines, leaving out empty values.
func facts(w io.Writer, lines [][2]string) error {
	s := screenOf(w)
	names := 0
	for _, l := range lines {
		if l[1] != "" {
			names = max(names, ansi.StringWidth(l[0]))
		}
	}
	for _, l := range lines {
		if l[1] == "" {
			continue
		}
		value := orDash(extensions.Clean(l[1], maxCell))
		if s.width > 0 {
			value = ansi.Wrap(value, max(s.width-names-gap, leastText), " ")
		}
		value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", names+gap))
		name := extensions.Clean(l[0], maxCell)
		if _, err := fmt.Fprintf(s, "%s%s%s\n", name, strings.Repeat(" ", max(names-ansi.StringWidth(name), 0)+gap), value); err != nil {
			return err
		}
	}
	return nil
}

// wrapped fits lines of text to the screen, continued under their own indentation.
func wrapped(w io.Writer, lines []string) string {
	s := screenOf(w)
	if s.width == 0 {
		return strings.Join(lines, "\n")
	}
	out := make([]string, len(lines))
	for i, line := range lines {
		text := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(text)]
		out[i] = indent + strings.ReplaceAll(ansi.Wrap(text, max(s.width-len(indent), leastText), " "), "\n", "\n"+indent)
	}
	return strings.Join(out, "\n")
}
