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
	switch s.state {
	case "creating", "pending_build":
		s.state, s.changed = "started", v.clock.Now()
	case "destroying":
		v.remove(s)
	}
}

// remove makes a sandbox be gone; lists show it a while.
func (v *Vendor) remove(s *sandbox) {
	if err := s.Remove(); err != nil {
		v.t.Errorf("sandbox %s: %v", s.id, err)
	}
	delete(v.sandboxes, s.id)
	if v.listLag > 0 {
		v.gone[s.id] = listed{until: v.clock.Now().Add(v.listLag), fields: v.shown(s, "SandboxListItem")}
	}
}

func (v *Vendor) destroy(s *sandbox, _ *http.Request, _ []byte) (any, error) {
	if s.state == "destroying" {
		return nil, fail(http.StatusBadRequest, "Sandbox state change in progress")
	}
	if err := s.Kill(); err != nil {
		return nil, err
	}
	s.state, s.changed, s.looks = "destroying", v.clock.Now(), v.slow
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
	return v.interval(s, r, &s.autoDelete)
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

// expire ends what is due: by its ttl, and what nobody used for long.
func (v *Vendor) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.clock.Now()
	for _, s := range v.sandboxes {
		idle := s.autoStop > 0 && s.state == "started" && !now.Before(s.active.Add(time.Duration(s.autoStop)*time.Minute))
		switch {
		case !s.ends.IsZero() && !now.Before(s.ends), idle && s.autoDelete == 0:
			v.remove(s)
		case idle:
			if err := s.Kill(); err != nil {
				v.t.Errorf("sandbox %s: %v", s.id, err)
			}
			s.state, s.changed = "stopped", now
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
