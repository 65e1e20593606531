package daytonatest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (v *Vendor) get(s *sandbox, _ *http.Request, _ []byte) (any, error) {
	out := v.shown(s, "Sandbox")
	v.step(s)
	return out, nil
}

// step lets what takes looks go on.
func (v *Vendor) step(s *sandbox) {
	if s.looks < 0 {
		return
	}
	if s.looks > 0 {
		s.looks--
		return
	}
	to, under := map[string]string{"creating": "started", "pending_build": "started", "starting": "started", "restoring": "started",
		"resuming": "started", "stopping": "stopped", "pausing": "paused", "archiving": "archived",
		"snapshotting": s.was, "resizing": s.was}[s.state]
	switch {
	case s.state == "destroying":
		v.remove(s)
	case s.state == "pending_build" && !v.whole(s):
		s.state, s.reason, s.changed = "build_failed", "a file of the context is missing", v.clock.Now()
	case under:
		if s.state == "snapshotting" {
			v.kept(s)
		}
		s.state, s.changed, s.active = to, v.clock.Now(), v.clock.Now()
	}
}

// begin lets a change of state take its looks.
func (v *Vendor) begin(s *sandbox, state string) {
	s.was, s.state, s.changed, s.looks = s.state, state, v.clock.Now(), v.slow
}

// remove makes a sandbox be gone; lists show it a while.
func (v *Vendor) remove(s *sandbox) {
	v.do(s.Remove())
	if s.taking != nil {
		v.forget(s.taking)
	}
	delete(v.sandboxes, s.id)
	if v.listLag > 0 {
		v.gone[s.id] = listed{until: v.clock.Now().Add(v.listLag), fields: v.shown(s, "SandboxListItem")}
	}
}

func (v *Vendor) destroy(s *sandbox, _ *http.Request, _ []byte) (any, error) {
	if s.state == "destroying" || s.state == "snapshotting" {
		return nil, fail(http.StatusBadRequest, "Sandbox state change in progress")
	}
	if err := s.Kill(); err != nil {
		return nil, err
	}
	v.begin(s, "destroying")
	return v.shown(s, "Sandbox"), nil
}

func (v *Vendor) ttl(s *sandbox, r *http.Request, _ []byte) (any, error) {
	n, err := strconv.Atoi(r.PathValue("ttlMinutes"))
	if err != nil {
		return nil, fail(http.StatusBadRequest, "ttlMinutes must be a number")
	}
	if n == 0 {
		v.t.Errorf("a ttl of 0 was sent: the sandbox would live forever")
	}
	now := v.clock.Now()
	s.ends = v.cut(now, now.Add(time.Duration(n)*time.Minute))
	return v.shown(s, "Sandbox"), nil
}

func (v *Vendor) autoStop(s *sandbox, r *http.Request, _ []byte) (any, error) {
	return v.interval(s, r, &s.autoStop)
}

func (v *Vendor) autoDelete(s *sandbox, r *http.Request, _ []byte) (any, error) {
	if s.gpu > 0 {
		return nil, fail(http.StatusBadRequest, "GPU sandboxes must be ephemeral - autoDeleteInterval must be 0")
	}
	return v.interval(s, r, &s.autoDelete)
}

func (v *Vendor) autoArchive(s *sandbox, r *http.Request, _ []byte) (any, error) {
	return v.interval(s, r, &s.autoArchive)
}

func (v *Vendor) interval(s *sandbox, r *http.Request, of *int) (any, error) {
	n, err := strconv.Atoi(r.PathValue("interval"))
	if err != nil {
		return nil, fail(http.StatusBadRequest, "interval must be a number")
	}
	*of = n
	return v.shown(s, "Sandbox"), nil
}

func (v *Vendor) preview(s *sandbox, r *http.Request, _ []byte) (any, error) {
	return map[string]any{"sandboxId": s.id, "token": s.token, "url": "https://" + r.PathValue("port") + "-" + s.id + "." + v.Domain}, nil
}

// expire does what is due: by a ttl, to what nobody used for long, and to what has been stopped for long.
func (v *Vendor) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.clock.Now()
	after := func(minutes int, from time.Time) bool {
		return !now.Before(from.Add(time.Duration(minutes) * time.Minute))
	}
	for _, s := range v.sandboxes {
		idle := s.autoStop > 0 && s.state == "started" && after(s.autoStop, s.active)
		stopped := s.state == "stopped" || s.state == "archived"
		switch {
		case !s.ends.IsZero() && !now.Before(s.ends), idle && s.autoDelete == 0, stopped && s.autoDelete > 0 && after(s.autoDelete, s.changed):
			v.remove(s)
		case idle:
			v.do(s.Kill())
			s.state, s.changed = "stopped", now
		case s.autoPause > 0 && s.state == "started" && after(s.autoPause, s.active):
			v.do(s.Freeze())
			s.state, s.changed = "paused", now
		case s.state == "stopped" && s.class == Container && after(s.autoArchive, s.changed):
			s.state, s.changed = "archived", now
		}
	}
}

func (v *Vendor) list(r *http.Request, _ []byte) (any, error) {
	query := r.URL.Query()
	want := map[string]string{}
	if text := query.Get("labels"); text != "" {
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			return nil, fail(http.StatusBadRequest, "Invalid labels JSON format")
		}
	}
	now := v.clock.Now()
	found := map[string]map[string]any{}
	for id, s := range v.sandboxes {
		failed := s.state == "error" || s.state == "build_failed"
		if now.Before(s.made.Add(v.listLag)) || failed && query.Get("includeErroredDeleted") != "true" {
			continue
		}
		found[id] = v.shown(s, "SandboxListItem")
	}
	for id, g := range v.gone {
		if now.Before(g.until) {
			found[id] = g.fields
		}
	}
	var ids []string
	for id, fields := range found {
		has := true
		for key, value := range want {
			has = has && fields["labels"].(map[string]string)[key] == value
		}
		if has {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if cursor, err := base64.URLEncoding.DecodeString(query.Get("cursor")); err == nil {
		ids = slices.DeleteFunc(ids, func(id string) bool { return strings.Compare(id, string(cursor)) <= 0 })
	}
	limit := 100
	if query.Has("limit") {
		if _, err := fmt.Sscan(query.Get("limit"), &limit); err != nil {
			return nil, err
		}
	}
	var next any
	if len(ids) > limit {
		ids = ids[:limit]
		next = base64.URLEncoding.EncodeToString([]byte(ids[limit-1]))
	}
	items := []map[string]any{}
	for _, id := range ids {
		items = append(items, found[id])
	}
	return map[string]any{"items": items, "nextCursor": next}, nil
}
