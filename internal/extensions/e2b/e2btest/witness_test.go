package e2btest

import (
	"flag"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/hosttest/vendortest"
)

var update = flag.Bool("update", false, "write the golden files")

func TestTheVendorsOwnSDKSpeaksToTheFake(t *testing.T) {
	t.Parallel()
	v := Start(t)
	out := vendortest.Scenario(t, "e2b", "E2B_API_URL="+v.APIURL, "E2B_SANDBOX_URL="+v.SandboxURL, "E2B_API_KEY="+v.Key)
	vendortest.Golden(t, *update, "sdk.answers", out)
	calls, err := v.Calls()
	if err != nil {
		t.Fatal(err)
	}
	vendortest.Golden(t, *update, "sdk.calls", vendortest.Script(calls))
	if left := v.Sandboxes(); len(left) != 0 {
		t.Errorf("left: %v", left)
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
	const want = `{
  "process": {
    "args": [
      "-c",
      "true"
    ],
    "cmd": "/bin/sh"
  },
  "stdin": false
}`
	if last := calls[len(calls)-1]; last.On != "POST /process.Process/Start" || last.Body != want {
		t.Errorf("%+v", last)
	}
}
