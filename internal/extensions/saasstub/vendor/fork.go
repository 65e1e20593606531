package vendor

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Fork gives a created object the files of a live one, in place of what it had.
func (c *Client) Fork(ctx context.Context, ref, from string) error {
	return c.call(ctx, OpFork, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o, err := st.live(ref)
		if err != nil {
			return nil, err
		}
		source, err := st.live(from)
		if err == nil && source.Account != c.account {
			err = fault(CodeNotFound, "there is no object "+from)
		}
		if err == nil {
			err = os.RemoveAll(filepath.Join(c.v.home(ref), "root"))
		}
		if err == nil {
			err = c.v.copyTree(ctx, o, source)
		}
		return o, err
	})
}

func (v *Vendor) copyTree(ctx context.Context, o, source *Object) error {
	from, err := v.openTree(source)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := v.openTree(o)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		_, err := tarstream.Pack(ctx, w, from, keeping())
		packed <- errors.Join(err, w.CloseWithError(err))
	}()
	if err = unpack(ctx, to, ".", r); err == nil {
		_, err = io.Copy(io.Discard, r) // what follows the archive's end
	}
	return errors.Join(err, r.CloseWithError(err), <-packed)
}
