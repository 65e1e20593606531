package catalog_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"testing"
)

// section is one file of a txtar archive: "-- name --" and what follows.
type section struct {
	name string
	data []byte
}

var marker = regexp.MustCompile(`(?m)^-- (.+) --\n`)

func readArchive(t testing.TB, file string) (comment []byte, sections []section) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := marker.FindAllSubmatchIndex(data, -1)
	if len(at) == 0 {
		t.Fatalf("%s has no sections", file)
	}
	for i, m := range at {
		end := len(data)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		sections = append(sections, section{string(data[m[2]:m[3]]), data[m[1]:end]})
	}
	return data[:at[0][0]], sections
}

func writeArchive(t *testing.T, file string, comment []byte, sections []section) {
	t.Helper()
	var b bytes.Buffer
	b.Write(comment)
	for _, s := range sections {
		fmt.Fprintf(&b, "-- %s --\n%s", s.name, s.data)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
