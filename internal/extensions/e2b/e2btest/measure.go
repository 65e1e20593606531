package e2btest

import (
	"net/http"
	"strings"
	"time"
)

// metrics has one measurement of a running sandbox, and none of a paused one.
func (v *Vendor) metrics(r *http.Request, _ []byte) (answer, error) {
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	out := []map[string]any{}
	if s.state == running {
		now := v.clock.Now()
		out = append(out, map[string]any{"timestamp": stamp(now), "timestampUnix": now.Unix(), "cpuCount": s.size.CPU, "cpuUsedPct": 1.5,
			"memUsed": 64 << 20, "memTotal": s.size.MemoryMB << 20, "memCache": 0, "diskUsed": 1 << 20, "diskTotal": s.size.DiskMB << 20})
	}
	return answer{status: http.StatusOK, body: out}, nil
}

// levels of log entries, from the least.
var levels = []string{"debug", "info", "warn", "error"}

// note writes into the vendor's log of a sandbox, where the daemon sends its own.
func (s *sandbox) note(now time.Time, level, message string, fields map[string]string) {
	s.log = append(s.log, map[string]any{"timestamp": stamp(now), "level": level, "message": message, "fields": fields})
}

func (v *Vendor) logs(r *http.Request, _ []byte) (answer, error) {
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	query, out := r.URL.Query(), []map[string]any{}
	for _, entry := range s.log {
		if at, _ := time.Parse(time.RFC3339Nano, entry["timestamp"].(string)); query.Has("cursor") &&
			at.UnixMilli() < number(query.Get("cursor")) {
			continue
		}
		if indexOf(levels, entry["level"].(string)) < indexOf(levels, query.Get("level")) || !strings.Contains(entry["message"].(string),
			query.Get("search")) {
			continue
		}
		out = append(out, entry)
	}
	if limit := int(number(query.Get("limit"))); query.Has("limit") && len(out) > limit {
		out = out[:limit]
	}
	return answer{status: http.StatusOK, body: map[string]any{"logs": out}}, nil
}
