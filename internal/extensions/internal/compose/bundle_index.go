package compose

import (
	"context"
	"encoding/json"
	"io"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// maxIndex bounds what Index returns, in bytes.
const maxIndex = 4 << 20

// Indexed is a source of which only that is left which reading and rendering a stack needed; see Bundle.Index.
type Indexed []byte

// Open implements extensions.WorkspaceSource. Nothing that Index promises needs it.
func (x Indexed) Open(context.Context) (io.ReadCloser, error) {
	return nil, extensions.Errorf(extensions.KindUnsupported, "the stack needs files that were not kept with it").
		WithRemedy("create it from its workspace, or from a snapshot")
}

// Digest implements extensions.WorkspaceSource.
func (Indexed) Digest() string { return "" }

// Size implements extensions.WorkspaceSource.
func (x Indexed) Size() int64 { return int64(len(x)) }

// Origin implements extensions.WorkspaceSource.
func (Indexed) Origin() string { return "the stack that was kept" }

// indexed is an entry as Index writes it.
type indexed struct {
	Entry
	Data []byte `json:",omitempty"`
}

// Index returns what has been read and looked up so far: the same stack, loaded and rendered from Indexed, is the same
// again. It is nil if that is too much to keep.
func (b *Bundle) Index() []byte {
	var all []indexed
	b.needed.Range(func(name, _ any) bool {
		if e := b.entries[name.(string)]; e != nil {
			all = append(all, indexed{*e, e.data})
		}
		return true
	})
	raw, err := json.Marshal(all)
	if err != nil || len(raw) > maxIndex { // text, numbers and bytes cannot fail
		return nil
	}
	return raw
}

// bundle reads what Index wrote.
func (x Indexed) bundle(b *Bundle) error {
	var all []indexed
	if err := json.Unmarshal(x, &all); err != nil {
		return extensions.Errorf(extensions.KindInternal, "the stack that was kept cannot be read: %w", err)
	}
	for _, e := range all {
		e.data = e.Data
		e.kept = e.data != nil || e.Size == 0
		b.entries[e.Name] = &e.Entry
	}
	return nil
}
