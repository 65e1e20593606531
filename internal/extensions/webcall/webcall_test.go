package webcall

import (
	"strings"
	"testing"
)

// A link is an address that may have a query; neither goes to another machine in the clear, and no error repeats it.
func TestALinkIsAnAddressThatMayHaveAQuery(t *testing.T) {
	t.Parallel()
	for text, is := range map[string]struct{ address, link bool }{
		"https://store.example/a/b":                 {true, true},
		"http://127.0.0.1:8/a":                      {true, true},
		"https://store.example/a?Signature=s3cr%2B": {false, true},
		"http://localhost:8/a?Signature=s3cr":       {false, true},
		"https://store.example/a?":                  {false, true},
		"http://store.example/a?Signature=s3cr":     {},
		"https://me:s3cr@store.example/a?b=c":       {},
		"https://store.example/a#s3cr":              {},
		"https:///a?Signature=s3cr":                 {},
		"ftp://store.example/a?Signature=s3cr":      {},
		"https://store.example/%zz?Signature=s3cr":  {},
		"": {},
	} {
		at, no := Address(text)
		link, bad := Link(text)
		if (no == nil) != is.address || (bad == nil) != is.link {
			t.Errorf("%q: as an address %v, as a link %v", text, no, bad)
		}
		for _, err := range []error{no, bad} {
			if err != nil && strings.Contains(err.Error(), "s3cr") {
				t.Errorf("%q: %v", text, err)
			}
		}
		if no == nil && at.String() != text || bad == nil && link.String() != text {
			t.Errorf("%q became %v and %v", text, at, link)
		}
	}
}
