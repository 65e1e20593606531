package e2btest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// namespace is the team's, below which its names lie.
const namespace = "acme"

func (v *Vendor) snapshot(r *http.Request, body []byte) (answer, error) {
	var want struct {
		Name string `json:"name"`
	}
	s, err := v.runs(r)
	if err == nil {
		err = read(body, &want)
	}
	if err != nil {
		return answer{}, err
	}
	t, err := v.keep(s, want.Name)
	if err != nil {
		return answer{}, err
	}
	return answer{status: http.StatusCreated, body: t.asSnapshot()}, nil
}

// keep makes a template of a sandbox's files. One of the same name gets the new contents.
func (v *Vendor) keep(s *sandbox, name string) (*template, error) {
	name, tag, _ := strings.Cut(strings.TrimPrefix(name, namespace+"/"), ":")
	if tag == "" {
		tag = "default"
	}
	if err := s.Freeze(); err != nil {
		return nil, err
	}
	kept, err := v.room("snapshot", s.Root)
	if err != nil {
		return nil, err
	}
	if err := s.Thaw(); err != nil {
		return nil, err
	}
	t := &template{Template: Template{Name: name, CPU: s.size.CPU, MemoryMB: s.size.MemoryMB, DiskMB: s.size.DiskMB}, id: letters(20),
		name: name, tag: tag,
		folder: kept.Root, env: maps.Clone(s.env), source: s.id, made: v.clock.Now()}
	if name != "" {
		if old := v.template(name); old != nil {
			t.id = old.id
		}
	}
	v.templates[t.id] = t
	v.kept++
	v.choose(t.id, "snapshot", v.kept)
	return t, nil
}

func (t *template) asSnapshot() map[string]any {
	names, id := []string{}, t.id+":"+t.tag
	if t.name != "" {
		id = namespace + "/" + t.name + ":" + t.tag
		names = append(names, id)
	}
	return map[string]any{"snapshotID": id, "names": names}
}

func (v *Vendor) listSnapshots(r *http.Request, _ []byte) (answer, error) {
	query, header := r.URL.Query(), http.Header{}
	var found []*template
	for _, t := range v.templates {
		if t.source == "" || query.Has("sandboxID") && query.Get("sandboxID") != t.source {
			continue
		}
		if query.Has("name") && v.template(query.Get("name")) != t {
			continue
		}
		found = append(found, t)
	}
	slices.SortFunc(found, func(a, b *template) int { return strings.Compare(keyed(b.made, b.id), keyed(a.made, a.id)) })
	page, err := paged(found, query, header, func(t *template) string { return keyed(t.made, t.id) })
	out := []map[string]any{}
	for _, t := range page {
		out = append(out, t.asSnapshot())
	}
	return answer{status: http.StatusOK, body: out, header: header}, err
}

// fork makes copies of a sandbox with everything that was said at its creation, its metadata, too.
func (v *Vendor) fork(r *http.Request, body []byte) (answer, error) {
	want := struct {
		Timeout *int `json:"timeout"`
		Count   int  `json:"count"`
	}{Count: 1}
	s, err := v.the(r)
	if err == nil {
		err = read(body, &want)
	}
	if err != nil {
		return answer{}, err
	}
	life, err := v.timeout(want.Timeout)
	if err != nil {
		return answer{}, err
	}
	if s.state == paused {
		return answer{}, fail(http.StatusConflict, fmt.Sprintf("Sandbox '%s' is paused and cannot be forked; resume it first", s.id))
	}
	t, err := v.keep(s, "")
	if err != nil {
		return answer{}, err
	}
	t.source = "" // it is in no list
	out := []map[string]any{}
	for range want.Count {
		if err := v.admit(); err != nil {
			out = append(out, map[string]any{"error": err})
			continue
		}
		child := &sandbox{templateID: s.templateID, alias: s.alias, size: s.size, metadata: maps.Clone(s.metadata), env: maps.Clone(s.env),
			network: s.network, internet: s.internet, autoPause: s.autoPause, autoResume: s.autoResume}
		if s.accessToken != "" {
			child.accessToken = token()
		}
		if s.trafficKey != "" {
			child.trafficKey = token()
		}
		if err := v.launch(child, t.folder, life); err != nil {
			return answer{}, err
		}
		out = append(out, map[string]any{"sandbox": child.brief()})
	}
	delete(v.templates, t.id)
	return answer{status: http.StatusCreated, body: out}, nil
}
