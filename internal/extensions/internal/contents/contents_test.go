package contents_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/contents"
)

var errCut = errors.New("cut off")

// inside is a sandbox in memory that breaks off at the call that left counts down to.
type inside struct {
	files  map[string]string
	spaces int
	left   int
	calls  int
}

func (i *inside) call() error {
	i.calls++
	if i.left--; i.left == 0 {
		return errCut
	}
	return nil
}

func (i *inside) Get(_ context.Context, at string) ([]byte, error) {
	return []byte(i.files[at]), i.call()
}

func (i *inside) Put(_ context.Context, at string, b []byte) error {
	err := i.call()
	if err == nil {
		i.files[at] = string(b)
	}
	return err
}

func (i *inside) Workspace(context.Context, string, extensions.Spec) error {
	i.spaces++
	return i.call()
}

// Wherever it is cut off, the next try makes a sandbox whole, and one that is whole is not filled again.
func TestAFillingThatIsCutOffIsDoneAgain(t *testing.T) {
	t.Parallel()
	spec := extensions.Spec{ID: "sbx-aaaaaaaaaaaaaaaaaaaa", Instructions: "read me", Env: map[string]string{"A": "own", "B": "own"},
		Toolchain: extensions.Toolchain{Env: map[string]string{"A": "toolchain"}},
		Secrets:   map[string]extensions.Secret{"B": extensions.NewSecret("secret")}}
	for cut := 1; cut <= 5; cut++ {
		in := &inside{files: map[string]string{}, left: cut}
		var first, second, third contents.Known
		if err := first.Fill(t.Context(), "ref", "/work", spec, in); (err != nil) != (cut < 5) {
			t.Fatalf("cut at call %d: %v", cut, err)
		}
		in.left = 0
		if err := second.Fill(t.Context(), "ref", "/work", spec, in); err != nil {
			t.Fatalf("after a cut at call %d: %v", cut, err)
		}
		if in.files["/work/"+extensions.InstructionsPath] != "read me" {
			t.Errorf("cut at call %d: %v", cut, in.files)
		}
		before := in.calls
		c, err := third.Of(t.Context(), "ref", spec.ID, in)
		if got := c.For(extensions.ExecRequest{Env: map[string]string{"C": "own"}}).Env; err != nil ||
			!maps.Equal(got, map[string]string{"A": "own", "B": "secret", "C": "own"}) {
			t.Errorf("%v, %v", got, err)
		}
		if err := third.Fill(t.Context(), "ref", "/work", spec, in); err != nil || in.calls != before+1 {
			t.Errorf("whole, and %d calls more: %v", in.calls-before, err)
		}
	}
}

// What a snapshot or its user left there is not taken for the sandbox's own.
func TestContentsOfAnotherAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "no JSON", `{"id":"sbx-bbbbbbbbbbbbbbbbbbbb","env":{"A":"theirs"}}`} {
		var k contents.Known
		c, err := k.Of(t.Context(), "ref", "sbx-aaaaaaaaaaaaaaaaaaaa", &inside{files: map[string]string{contents.File: text}})
		if err != nil || c.ID != "" || c.Env != nil {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
}
