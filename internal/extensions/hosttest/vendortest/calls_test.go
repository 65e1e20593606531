package vendortest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCallsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	calls := []Call{{On: "GET /a", Query: "?x=1?y=2"}, {On: "POST /b", Body: "{\n  \"a\": 1\n}", Headers: []string{"Content-Type: a"}}, {On: "PUT /c"}}
	if diff := cmp.Diff(calls, Parse(Script(calls))); diff != "" {
		t.Error(diff)
	}
}

func TestADifferenceIsToldByOperation(t *testing.T) {
	t.Parallel()
	one := []Call{{On: "GET /a", Query: "?x=1"}, {On: "POST /b", Body: "{}", Headers: []string{"Content-Type: a"}}, {On: "POST /b", Body: "{}"}}
	other := []Call{{On: "GET /a"}, {On: "POST /b", Body: "{}"}, {On: "PUT /c", Body: "1"}}
	want := `GET /a
- one: ?x=1
+ other: (no query, no body)

POST /b
  the same

PUT /c
+ other: 1

`
	if diff := cmp.Diff(want, Difference("one", one, "other", other)); diff != "" {
		t.Error(diff)
	}
}
