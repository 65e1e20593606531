package e2btest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheSDKsCallsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	calls := SDKCalls(t)
	if len(calls) < 15 || Script(calls) != Script(parse(Script(calls))) {
		t.Errorf("%d calls:\n%s", len(calls), Script(calls))
	}
	if got := Difference("sdk", calls, "again", parse(Script(calls))); got == "" || cmp.Diff(got, Difference("again", calls, "sdk", calls)) != "" {
		t.Error(got)
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

func TestTwoEncodingsOfACallAreOneCall(t *testing.T) {
	t.Parallel()
	c := connected(t)
	id, token := c.made(nil)
	if _, _, err := c.shell(id, token, "true", nil); err != nil { // in protobuf's binary form
		t.Fatal(err)
	}
	calls, err := c.v.Calls()
	if err != nil {
		t.Fatal(err)
	}
	last := calls[len(calls)-1]
	want := Call{On: "POST /process.Process/Start", Headers: last.Headers, Body: `{
  "process": {
    "args": [
      "-c",
      "true"
    ],
    "cmd": "/bin/sh"
  },
  "stdin": false
}`}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Error(diff)
	}
}
