package vendor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/tarstream"
)

// Snapshot is what is kept of an object: its metadata and its files, without its environment.
type Snapshot struct {
	Ref       string    `json:"ref"`
	Name      string    `json:"name"` // unique
	Account   string    `json:"account"`
	Team      string    `json:"team,omitempty"` // see Script
	Of        string    `json:"of"`             // the object's name
	Size      int64     `json:"size"`           // bytes of the archive
	Digest    string    `json:"digest"`
	CreatedAt time.Time `json:"created_at"`
	VisibleAt time.Time `json:"visible_at"`
}

func (v *Vendor) archive(ref string) string { return v.path("snapshots", ref+".tar") }

// TakeSnapshot snapshots a live object under a name; the same name again returns the first snapshot.
func (c *Client) TakeSnapshot(ctx context.Context, ref, name string) (snap Snapshot, err error) {
	err = c.call(ctx, OpSnapshot, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		if c.trial {
			return nil, fault(CodeInvalid, "the trial plan keeps no snapshots")
		}
		for _, s := range st.Snapshots {
			if s.Name == name {
				snap = *s
				return nil, nil
			}
		}
		o, err := st.live(ref)
		if err != nil {
			return nil, err
		}
		now := st.now()
		s := &Snapshot{Ref: newRef("img"), Name: name, Account: c.account, Of: o.Name,
			CreatedAt: now, VisibleAt: now.Add(c.lag)}
		if s.Size, s.Digest, err = c.v.keep(ctx, o, s.Ref); err != nil {
			return nil, err
		}
		st.Snapshots[s.Ref] = s
		snap = *s
		return nil, nil
	})
	return snap, err
}

// keeping is how an object's files are copied: without its environment.
func keeping() tarstream.Options {
	opts := packing
	opts.Skip = func(p string, _ bool) bool { return p == "run" || p == "tmp" }
	return opts
}

// keep writes the object's files to the archive of ref, completely or not at all.
func (v *Vendor) keep(ctx context.Context, o *Object, ref string) (size int64, digest string, err error) {
	root, err := v.openTree(o)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = root.Close() }()
	if err := os.MkdirAll(v.path("snapshots"), 0o700); err != nil {
		return 0, "", err
	}
	tmp := v.archive("tmp") // one at a time, under the lock
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, "", err
	}
	sum := sha256.New()
	_, err = tarstream.Pack(ctx, io.MultiWriter(tarstream.WithRoom(f), sum), root, keeping())
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, "", errors.Join(err, os.Remove(tmp))
	}
	info, err := os.Stat(tmp)
	if err != nil {
		return 0, "", err
	}
	return info.Size(), "sha256:" + hex.EncodeToString(sum.Sum(nil)), os.Rename(tmp, v.archive(ref))
}

// GetSnapshot returns a snapshot by reference; nil if there is none.
func (c *Client) GetSnapshot(ctx context.Context, ref string) (snap *Snapshot, err error) {
	err = c.call(ctx, OpGetSnapshot, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		if s := st.Snapshots[ref]; s != nil && s.Account == c.account {
			copied := *s
			snap = &copied
		}
		return nil, nil
	})
	return snap, err
}

// FindSnapshot returns a snapshot by name; nil if none is visible.
func (c *Client) FindSnapshot(ctx context.Context, name string) (snap *Snapshot, err error) {
	err = c.call(ctx, OpFindSnapshot, target{name: name}, func(st *state, _ Rule) (*Object, error) {
		for _, s := range st.Snapshots {
			if s.Name == name && s.Account == c.account && !st.now().Before(s.VisibleAt) {
				copied := *s
				snap = &copied
			}
		}
		return nil, nil
	})
	return snap, err
}

// DeleteSnapshot removes a snapshot; CodeNotFound if there is none.
func (c *Client) DeleteSnapshot(ctx context.Context, ref string) error {
	return c.call(ctx, OpDeleteSnapshot, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		if st.Snapshots[ref] == nil {
			return nil, fault(CodeNotFound, "there is no snapshot "+ref)
		}
		if err := os.Remove(c.v.archive(ref)); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		delete(st.Snapshots, ref)
		return nil, nil
	})
}

// Restore puts a snapshot's files into a created object.
func (c *Client) Restore(ctx context.Context, ref, snapshot string) error {
	return c.call(ctx, OpFiles, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o, err := st.live(ref)
		if err != nil {
			return nil, err
		}
		if st.Snapshots[snapshot] == nil {
			return nil, fault(CodeNotFound, "there is no snapshot "+snapshot)
		}
		f, err := os.Open(c.v.archive(snapshot))
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		root, err := c.v.openTree(o)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }()
		return nil, unpack(ctx, root, ".", f)
	})
}

// ReadSnapshot sends a snapshot's archive.
func (c *Client) ReadSnapshot(ctx context.Context, ref string, w io.Writer) error {
	var f *os.File
	err := c.call(ctx, OpReadSnapshot, target{ref: ref}, func(st *state, _ Rule) (_ *Object, err error) {
		if s := st.Snapshots[ref]; s == nil || s.Account != c.account {
			return nil, fault(CodeNotFound, "there is no snapshot "+ref)
		}
		f, err = os.Open(c.v.archive(ref))
		return nil, err
	})
	if f == nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err == nil {
		_, err = io.Copy(w, f)
	}
	return err
}

// RestoreStaged puts the files of an archive into a created object once all of it has arrived without an error.
func (c *Client) RestoreStaged(ctx context.Context, ref string, archive io.Reader) error {
	root, o, err := c.tree(ctx, OpFiles, ref)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	staged := c.v.path("sandboxes", o.Ref, "staged.tar")
	f, err := os.OpenFile(staged, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(staged)) }()
	if _, err := io.Copy(f, archive); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return unpack(ctx, root, ".", f)
}
