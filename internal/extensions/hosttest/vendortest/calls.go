package vendortest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Call is a request in a form that two clients' can be compared in: queries and bodies have one spelling.
type Call struct {
	On      string // method and path
	Query   string
	Headers []string // those that the vendor reads
	Body    string
}

// Chance is what differs from run to run, with a name for it.
type Chance struct {
	Is   *regexp.Regexp
	Name string
}

// Named gives names to what chance chose, and leaves out what was asked before.
func Named(calls []Call, chance []Chance) (out []Call) {
	for _, c := range calls {
		for _, x := range chance {
			for _, text := range []*string{&c.On, &c.Query, &c.Body} {
				*text = x.Is.ReplaceAllString(*text, x.Name)
			}
		}
		if !slices.ContainsFunc(out, func(o Call) bool { return o.On == c.On && o.Query == c.Query && o.Body == c.Body }) {
			out = append(out, c)
		}
	}
	return out
}

// Calls are the requests of a vendor's clients so far, by operation, without headers.
func (w *Wire) Calls() ([]Call, error) {
	var out []Call
	for _, r := range w.Requests() {
		query, err := url.ParseQuery(r.Query)
		if err != nil {
			return nil, err
		}
		c := Call{On: r.On}
		for _, name := range slices.Sorted(maps.Keys(query)) {
			c.Query += "?" + name + "=" + strings.Join(query[name], ",")
		}
		if c.Body, err = r.Text(); err != nil {
			return nil, fmt.Errorf("%s: %w", r.On, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// Text is a request's body: JSON in one spelling, the files of a form, the names in an archive.
func (r Request) Text() (string, error) {
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case len(r.Body) == 0:
		return "", nil
	case kind == "multipart/form-data":
		return form(multipart.NewReader(bytes.NewReader(r.Body), params["boundary"]))
	case bytes.HasPrefix(r.Body, []byte{0x1f, 0x8b}):
		return archived(r.Body)
	case kind == "application/octet-stream":
		return string(r.Body), nil
	}
	return Canonical(r.Body)
}

// archived names what a packed archive holds.
func archived(body []byte) (string, error) {
	from, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	names := "an archive of"
	for all := tar.NewReader(from); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return "", err
		}
		names += " " + h.Name
	}
}

func form(parts *multipart.Reader) (string, error) {
	var out strings.Builder
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return strings.TrimSpace(out.String()), nil
		}
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return "", err
		}
		_, disposition, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		fmt.Fprintf(&out, "%s filename=%s: %s\n", part.FormName(), disposition["filename"], text)
	}
}

// Canonical spells JSON in one way. Process ids are the system's choice.
func Canonical(text []byte) (string, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return "", err
	}
	anonymous(v)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return strings.TrimSpace(out.String()), err
}

func anonymous(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if _, number := value.(float64); number && name == "pid" {
				v[name] = "<pid>"
			}
			anonymous(value)
		}
	case []any:
		for _, value := range v {
			anonymous(value)
		}
	}
}

// Script writes calls down, for a golden file.
func Script(calls []Call) string {
	var out strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&out, "%s%s\n", c.On, c.Query)
		for _, h := range c.Headers {
			fmt.Fprintf(&out, "  %s\n", h)
		}
		if c.Body != "" {
			fmt.Fprintf(&out, "%s\n", c.Body)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// Parse reads what Script wrote.
func Parse(script string) []Call {
	var out []Call
	for _, block := range strings.Split(strings.TrimSpace(script), "\n\n") {
		lines := strings.Split(block, "\n")
		c := Call{}
		on, query, asked := strings.Cut(lines[0], "?")
		if c.On = on; asked {
			c.Query = "?" + query
		}
		for lines = lines[1:]; len(lines) > 0 && strings.HasPrefix(lines[0], "  "); lines = lines[1:] {
			c.Headers = append(c.Headers, strings.TrimSpace(lines[0]))
		}
		c.Body = strings.Join(lines, "\n")
		out = append(out, c)
	}
	return out
}

// Difference tells, operation by operation, which of a client's calls another never makes, by method, path, query and
// body. How often and in which order each makes them is not compared.
func Difference(oneName string, one []Call, otherName string, other []Call) string {
	a, b := distinct(one), distinct(other)
	var out strings.Builder
	for _, on := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))))) {
		onlyA, onlyB := without(a[on], b[on]), without(b[on], a[on])
		fmt.Fprintf(&out, "%s\n", on)
		if len(onlyA)+len(onlyB) == 0 {
			out.WriteString("  the same\n")
		}
		for _, c := range onlyA {
			fmt.Fprintf(&out, "- %s: %s\n", oneName, c)
		}
		for _, c := range onlyB {
			fmt.Fprintf(&out, "+ %s: %s\n", otherName, c)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// distinct are the different queries and bodies of each operation.
func distinct(calls []Call) map[string][]string {
	out := map[string][]string{}
	for _, c := range calls {
		what := strings.TrimSpace(c.Query + " " + c.Body)
		if what == "" {
			what = "(no query, no body)"
		}
		if !slices.Contains(out[c.On], what) {
			out[c.On] = append(out[c.On], what)
		}
	}
	return out
}

func without(these, those []string) []string {
	return slices.DeleteFunc(slices.Clone(these), func(s string) bool { return slices.Contains(those, s) })
}
