package vendor

import (
	"context"
	"fmt"
	"time"
)

// PreviewTTL bounds the life of a preview's token; PreviewHeader carries it.
const (
	PreviewTTL    = 10 * time.Minute
	PreviewHeader = "X-Saas-Stub-Preview"
)

// Preview is the address of one port of an object.
type Preview struct {
	Address string    `json:"address"`
	Token   string    `json:"token"`
	Until   time.Time `json:"until"`
}

// Preview gives the address of a port of a live object, with a new token.
func (c *Client) Preview(ctx context.Context, ref string, port int) (p Preview, err error) {
	err = c.call(ctx, OpPreview, target{ref: ref}, func(st *state, _ Rule) (*Object, error) {
		o, err := st.live(ref)
		if err != nil {
			return nil, err
		}
		if o.State == StatePaused {
			return nil, fault(CodePaused, "the object is paused")
		}
		p = Preview{Address: fmt.Sprintf("https://%d-%s.preview.saas-stub.example", port, ref), Token: newRef("preview"),
			Until: st.now().Add(PreviewTTL)}
		if o.Deadline.Before(p.Until) {
			p.Until = o.Deadline
		}
		o.Previews = append(o.Previews, p)
		return o, nil
	})
	return p, err
}

// Visit reports whether a request with that token reaches a port of a live object.
func (v *Vendor) Visit(address, token string) (answers bool, err error) {
	err = v.update(func(st *state) error {
		for _, o := range st.Objects {
			for _, p := range o.Previews {
				if o.Live() && p.Address == address && (o.Public || p.Token == token && st.now().Before(p.Until)) {
					answers = true
					o.used(st.now())
				}
			}
		}
		return nil
	})
	return answers, err
}
