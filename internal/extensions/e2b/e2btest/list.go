package e2btest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// listed is what a list tells of a sandbox.
func (s *sandbox) listed() map[string]any {
	out := map[string]any{"templateID": s.templateID, "sandboxID": s.id, "clientID": clientID, "startedAt": stamp(s.started),
		"endAt":    stamp(s.ends),
		"cpuCount": s.size.CPU, "memoryMB": s.size.MemoryMB, "diskSizeMB": s.size.DiskMB, "state": s.state, "envdVersion": envdVersion}
	if s.alias != "" {
		out["alias"] = s.alias
	}
	if s.metadata != nil {
		out["metadata"] = s.metadata
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// ordered are all sandboxes, the newest first.
func (v *Vendor) ordered() []*sandbox {
	all := make([]*sandbox, 0, len(v.sandboxes))
	for _, s := range v.sandboxes {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sandbox) int {
		if c := b.started.Compare(a.started); c != 0 {
			return c
		}
		return strings.Compare(b.id, a.id)
	})
	return all
}

func (v *Vendor) list(r *http.Request, _ []byte) (answer, error) {
	query := r.URL.Query()
	wanted, err := url.ParseQuery(query.Get("metadata"))
	if err != nil {
		return answer{}, fail(http.StatusBadRequest, "Error parsing metadata")
	}
	states := []string{running, paused}
	if query.Has("state") {
		states = strings.Split(query.Get("state"), ",")
	}
	after, _ := time.Parse(time.RFC3339Nano, query.Get("startedAfter"))
	var found []*sandbox
	n := 0
	for _, s := range v.ordered() {
		if v.clock.Now().Before(s.made.Add(v.listDelay)) || !slices.Contains(states, s.state) || s.started.Before(after) || !s.has(wanted) {
			continue
		}
		if t := query.Get("template"); t != "" && t != s.templateID && t != s.alias {
			continue
		}
		if found = append(found, s); s.state == running {
			n++
		}
	}
	if query.Get("order") == "asc" {
		slices.Reverse(found)
	}
	header := http.Header{}
	if slices.Contains(states, running) {
		header.Set("X-Total-Running", strconv.Itoa(n))
	}
	page, err := paged(found, query, header, func(s *sandbox) string { return keyed(s.started, s.id) })
	out := []map[string]any{}
	for _, s := range page {
		out = append(out, s.listed())
	}
	return answer{status: http.StatusOK, body: out, header: header}, err
}

func (s *sandbox) has(wanted url.Values) bool {
	for key := range wanted {
		if value, ok := s.metadata[key]; !ok || value != wanted.Get(key) {
			return false
		}
	}
	return true
}

// paged cuts one page out of all, which are in the order of their keys or against it, and says in header how to
// ask for the next. What ends between two pages disturbs neither.
func paged[T any](all []T, query url.Values, header http.Header, key func(T) string) ([]T, error) {
	if next := query.Get("nextToken"); next != "" {
		last, err := base64.URLEncoding.DecodeString(next)
		if err != nil {
			return nil, fail(http.StatusBadRequest, "Invalid next token")
		}
		all = slices.DeleteFunc(slices.Clone(all), func(one T) bool {
			return key(one) == string(last) || (key(one) < string(last)) == (query.Get("order") == "asc")
		})
	}
	limit := 100
	if query.Has("limit") {
		if _, err := fmt.Sscan(query.Get("limit"), &limit); err != nil {
			return nil, err
		}
	}
	if len(all) > limit {
		all = all[:limit]
		header.Set("X-Next-Token", base64.URLEncoding.EncodeToString([]byte(key(all[limit-1]))))
	}
	return all, nil
}

// keyed is a place in the order of times.
func keyed(t time.Time, id string) string { return fmt.Sprintf("%020d__%s", t.UnixNano(), id) }
