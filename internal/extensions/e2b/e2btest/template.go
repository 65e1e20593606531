package e2btest

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Template is what sandboxes are made of. Their size is its.
type Template struct {
	Name     string
	CPU      int // vCPUs
	MemoryMB int
	DiskMB   int
}

// template is one that exists; a snapshot is one with a source.
type template struct {
	Template
	id, name, tag string
	folder        string // "" = a fresh room
	env           map[string]string
	source        string
	made          time.Time
	building      *build // the last one; nil = it exists without
}

// AddTemplate gives the account one more template.
func (v *Vendor) AddTemplate(t Template) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := letters(20)
	v.templates[id] = &template{Template: t, id: id, name: t.Name, tag: "default", made: v.clock.Now()}
}

// SetImages says which images a build finds at their registries; until then it finds every one.
func (v *Vendor) SetImages(references ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.images = map[string]bool{}
	for _, r := range references {
		v.images[r] = true
	}
}

// template finds one by id or name, with or without the team's namespace and the tag.
func (v *Vendor) template(reference string) *template {
	name, tag, tagged := strings.Cut(strings.TrimPrefix(reference, namespace+"/"), ":")
	for _, t := range v.templates {
		if name != "" && (t.id == name || t.name == name) && (!tagged || t.tag == tag) {
			return t
		}
	}
	return nil
}

// listTemplates lists no snapshots.
func (v *Vendor) listTemplates(r *http.Request, _ []byte) (answer, error) {
	var found []*template
	for _, t := range v.templates {
		if t.source == "" {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *template) int { return strings.Compare(keyed(b.made, b.id), keyed(a.made, a.id)) })
	header, out := http.Header{}, []map[string]any{}
	page, err := paged(found, r.URL.Query(), header, func(t *template) string { return keyed(t.made, t.id) })
	for _, t := range page {
		out = append(out, map[string]any{"templateID": t.id, "buildID": "00000000-0000-0000-0000-000000000000", "cpuCount": t.CPU,
			"memoryMB": t.MemoryMB, "diskSizeMB": t.DiskMB, "public": false, "createdAt": stamp(t.made), "updatedAt": stamp(t.made),
			"createdBy": nil, "lastSpawnedAt": nil, "spawnCount": 0, "buildCount": 1, "envdVersion": envdVersion,
			"aliases": []string{t.name}, "names": []string{namespace + "/" + t.name}, "buildStatus": "ready"})
	}
	return answer{status: http.StatusOK, body: out, header: header}, err
}

// getTemplate tells of a template and of its builds, the newest first.
func (v *Vendor) getTemplate(r *http.Request, _ []byte) (answer, error) {
	t := v.template(r.PathValue("templateID"))
	if t == nil {
		return answer{}, fail(http.StatusNotFound, fmt.Sprintf("template '%s' not found", r.PathValue("templateID")))
	}
	builds := []map[string]any{}
	for _, b := range v.builds {
		if b.templateID == t.id {
			builds = append(builds, map[string]any{"buildID": b.id, "status": b.status, "createdAt": stamp(b.made), "updatedAt": stamp(b.made),
				"cpuCount": t.CPU, "memoryMB": t.MemoryMB})
		}
	}
	slices.SortFunc(builds, func(a, b map[string]any) int {
		return strings.Compare(b["createdAt"].(string), a["createdAt"].(string))
	})
	return answer{status: http.StatusOK, body: map[string]any{"templateID": t.id, "public": false, "aliases": []string{t.name},
		"names": []string{namespace + "/" + t.name}, "createdAt": stamp(t.made), "updatedAt": stamp(t.made), "lastSpawnedAt": nil,
		"spawnCount": 0, "builds": builds}}, nil
}

// Templates are the names of those that were built.
func (v *Vendor) Templates() (names []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range v.templates {
		if t.building != nil {
			names = append(names, t.name)
		}
	}
	slices.Sort(names)
	return names
}

// AgeTemplates makes all templates older.
func (v *Vendor) AgeTemplates(by time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, t := range v.templates {
		t.made = t.made.Add(-by)
	}
}

func (v *Vendor) alias(r *http.Request, _ []byte) (answer, error) {
	t := v.template(r.PathValue("alias"))
	if t == nil || t.source != "" {
		return answer{}, fail(http.StatusNotFound, fmt.Sprintf("template '%s' not found", r.PathValue("alias")))
	}
	return answer{status: http.StatusOK, body: map[string]any{"templateID": t.id, "public": false}}, nil
}

func (v *Vendor) deleteTemplate(r *http.Request, _ []byte) (answer, error) {
	t := v.template(r.PathValue("templateID"))
	if t == nil {
		return answer{}, fail(http.StatusNotFound, fmt.Sprintf("template '%s' not found", r.PathValue("templateID")))
	}
	for _, s := range v.sandboxes {
		if s.templateID == t.id {
			return answer{}, fail(http.StatusBadRequest, fmt.Sprintf("cannot delete template '%s' because there are %s sandboxes using it",
				t.id, s.state))
		}
	}
	delete(v.templates, t.id)
	if t.folder == "" {
		return answer{status: http.StatusNoContent}, nil
	}
	return answer{status: http.StatusNoContent}, os.RemoveAll(t.folder)
}

// Snapshot is one that the vendor keeps.
type Snapshot struct{ ID, Source, Root string }

// RelabelSnapshot gives a snapshot another name behind everybody's back.
func (v *Vendor) RelabelSnapshot(id, name string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.template(id)
	if t == nil {
		return errNoSuch
	}
	t.name = name
	return nil
}

// Snapshots lists them all.
func (v *Vendor) Snapshots() []Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []Snapshot
	for _, t := range v.templates {
		if t.source != "" {
			out = append(out, Snapshot{ID: fmt.Sprint(t.asSnapshot()["snapshotID"]), Source: t.source, Root: t.folder})
		}
	}
	return out
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

func indexOf(list []string, s string) int { return slices.Index(list, s) }
