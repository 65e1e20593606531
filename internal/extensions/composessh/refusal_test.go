package composessh

import (
	"io"
	"testing"
)

// Engines say it in different ways that an image lacks the user.
func TestAUserThatIsNotThereIsDockersRefusal(t *testing.T) {
	t.Parallel()
	const old, since28 = "unable to find user app: no matching entries in passwd file\r\n", "Error response from daemon: unable to find " +
		"user app: no matching entries in passwd file\n"
	for what, c := range map[string]struct {
		text, login string
		code        int
		docker      bool
	}{
		"old":               {old, "app", 126, true},
		"since 28":          {since28, "app", 1, true},
		"a user of a group": {since28, "app:staff", 1, true},
		"a group":           {"Error response from daemon: unable to find group staff: no matching entries in group file\n", "0:staff", 1, true},
		"another's words":   {since28, "apprentice", 1, false},
		"nobody asked for":  {since28, "", 1, false},
		"another code":      {since28, "app", 2, false},
		"and more":          {"first\n" + since28, "app", 1, false},
	} {
		r := refusal{out: io.Discard}
		_, err := r.Write([]byte(c.text))
		must(t, err)
		if got := r.judge(c.code, "running", c.login); (got != "") != c.docker {
			t.Errorf("%s: %q", what, got)
		}
	}
}
