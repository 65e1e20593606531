package extensions_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

func TestFailedSaysWhatTheErrorDoesNot(t *testing.T) {
	t.Parallel()
	const id = extensions.ID("sbx-22222222222222222222")
	full := extensions.Errorf(extensions.KindExhausted, "full").WithRemedy("drop one")
	full.Op, full.ID = "find", "sbx-33333333333333333333"
	classify := func(err error) *extensions.Error {
		if errors.Is(err, fs.ErrPermission) {
			return extensions.Errorf(extensions.KindUnauthorized, "%w", err)
		}
		return nil
	}
	for name, tc := range map[string]struct {
		err  error
		id   extensions.ID
		kind extensions.Kind
		want string
	}{
		"its own words stay": {full, id, extensions.KindExhausted, "find: sbx-33333333333333333333: full"},
		"the verb and the id": {extensions.Errorf(extensions.KindConflict, "held"), id, extensions.KindConflict, "exec: " + string(id) +
			": held"},
		"an id that is none":     {extensions.Errorf(extensions.KindInvalid, "bad"), "no\nid", extensions.KindInvalid, "exec: bad"},
		"the adapter knows":      {fs.ErrPermission, id, extensions.KindUnauthorized, "exec: " + string(id) + ": " + fs.ErrPermission.Error()},
		"a deadline before that": {errors.Join(context.DeadlineExceeded, fs.ErrPermission), "", extensions.KindTimeout, ""},
		"a call that was cancelled": {fmt.Errorf("asking: %w", context.Canceled), "", extensions.KindIndeterminate,
			"exec: asking: context canceled"},
		"nobody knows": {errors.New("odd"), "", extensions.KindInternal, "exec: odd"},
	} {
		err := extensions.Failed("exec", tc.id, tc.err, classify)
		if extensions.KindOf(err) != tc.kind || tc.want != "" && err.Error() != tc.want {
			t.Errorf("%s: %s, %q", name, extensions.KindOf(err), err)
		}
	}
	if extensions.Failed("exec", id, nil, classify) != nil {
		t.Error("nothing failed")
	}
	var told *extensions.Error
	if again := extensions.Errorf(extensions.KindConflict, "held"); !errors.As(extensions.Failed("exec", id, again, nil), &told) ||
		told == again || again.Op != "" {
		t.Error("the error of somebody else was changed")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fs.ErrClosed }

func TestCaptureKeepsTheBeginningAndNeverFails(t *testing.T) {
	t.Parallel()
	var live strings.Builder
	c := extensions.Capture{Live: &live}
	whole := strings.Repeat("x", extensions.MaxExecOutput)
	for i, p := range []string{whole[1:], "y", "", "z"} {
		if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("write %d: %d, %v", i, n, err)
		}
		if c.Cut != (i == 3) {
			t.Errorf("write %d: cut is %t", i, c.Cut)
		}
	}
	if c.Kept.String() != whole[1:]+"y" || live.String() != whole[1:]+"yz" {
		t.Errorf("%d bytes are kept, %d passed on", c.Kept.Len(), live.Len())
	}
	gone := extensions.Capture{Live: broken{}}
	if n, err := gone.Write([]byte("abc")); n != 3 || err != nil || gone.Kept.String() != "abc" {
		t.Errorf("a reader that went away: %d, %v", n, err)
	}
}
