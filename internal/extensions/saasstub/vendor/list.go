package vendor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultPage is the most objects that one page of a list has without a script.
const DefaultPage = 100

// Page is a part of a list, oldest objects first.
type Page struct {
	Objects []Object
	Total   int    // objects in the whole list, now
	Next    string // the token of the next page; "" = this is the last
	Now     time.Time
}

// List returns one page of the account's visible objects; after is the token of the page before, "" for the first.
func (c *Client) List(ctx context.Context, after string) (page Page, err error) {
	err = c.call(ctx, OpList, target{}, func(st *state, r Rule) (*Object, error) {
		page = Page{Now: st.now()}
		var all []Object
		for _, o := range st.Objects {
			if o.Account == c.account && !page.Now.Before(o.VisibleAt) {
				all = append(all, o.clone())
			}
		}
		for _, o := range st.Deleted {
			if o.Account == c.account && page.Now.Before(o.GoneAt.Add(time.Duration(st.script.Ghosts))) {
				all = append(all, o.clone())
			}
		}
		slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a.place(), b.place()) })
		page.Total = len(all)
		from, _ := slices.BinarySearchFunc(all, after, func(o Object, token string) int {
			if o.place() <= token {
				return -1
			}
			return 1
		})
		to := min(len(all), from+st.pageSize())
		if page.Objects = all[from:to]; to < len(all) {
			page.Next = all[to-1].place()
		}
		switch {
		case page.Next == "":
		case r.Do == DoEndEarly:
			page.Next = ""
		case r.Do == DoRepeatPage && after != "":
			page.Next = after
		}
		return nil, nil
	})
	return page, err
}

// place orders lists, and does not change when other objects come and go.
func (o *Object) place() string { return fmt.Sprintf("%020d-%s", o.CreatedAt.UnixNano(), o.Ref) }

func (st *state) pageSize() int {
	if st.script.Page > 0 {
		return st.script.Page
	}
	return DefaultPage
}
