package e2btest

import (
	"fmt"
	"net/http"
	"time"
)

func (v *Vendor) get(r *http.Request, _ []byte) (answer, error) {
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	out := s.listed()
	s.secrets(out)
	out["domain"], out["allowInternetAccess"] = nil, s.internet
	on := "kill"
	if s.autoPause {
		on = "pause"
	}
	out["lifecycle"] = map[string]any{"autoResume": s.autoResume, "onTimeout": on}
	if s.network != nil {
		out["network"] = s.network
	}
	return answer{status: http.StatusOK, body: out}, nil
}

func (v *Vendor) kill(r *http.Request, _ []byte) (answer, error) {
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	delete(v.sandboxes, s.id)
	return answer{status: http.StatusNoContent}, s.end()
}

// runs is the sandbox of a request if it is running, or a 404.
func (v *Vendor) runs(r *http.Request) (*sandbox, error) {
	s, err := v.the(r)
	if err == nil && s.state != running {
		err = fail(http.StatusNotFound, fmt.Sprintf("Sandbox '%s' not found", s.id))
	}
	return s, err
}

func (v *Vendor) setTimeout(r *http.Request, body []byte) (answer, error) {
	var want struct {
		Timeout int `json:"timeout"`
	}
	s, err := v.runs(r)
	if err == nil {
		err = read(body, &want)
	}
	if err == nil {
		err = s.prolong(v.clock.Now(), time.Duration(want.Timeout)*time.Second, true)
	}
	return answer{status: http.StatusNoContent}, err
}

func (v *Vendor) refresh(r *http.Request, body []byte) (answer, error) {
	want := struct {
		Duration int `json:"duration"`
	}{Duration: 15}
	s, err := v.runs(r)
	if err == nil {
		err = read(body, &want)
	}
	if err == nil {
		err = s.prolong(v.clock.Now(), time.Duration(want.Duration)*time.Second, false)
	}
	return answer{status: http.StatusNoContent}, err
}

func (v *Vendor) pause(r *http.Request, body []byte) (answer, error) {
	want := struct {
		Memory bool `json:"memory"`
	}{Memory: true}
	s, err := v.the(r)
	if err == nil {
		err = read(body, &want)
	}
	if err != nil {
		return answer{}, err
	}
	if s.state == paused {
		return answer{}, fail(http.StatusConflict, fmt.Sprintf("Error pausing sandbox - sandbox '%s' is already paused", s.id))
	}
	return answer{status: http.StatusNoContent}, v.hold(s, want.Memory)
}

// wake lets a paused sandbox go on, as one more that runs.
func (v *Vendor) wake(s *sandbox, life time.Duration) error {
	if err := v.admit(); err != nil {
		return err
	}
	v.boot(s, life)
	return s.Thaw()
}

func (v *Vendor) connect(r *http.Request, body []byte) (answer, error) {
	var want struct {
		Timeout *int `json:"timeout"`
	}
	if err := read(body, &want); err != nil {
		return answer{}, err
	}
	life, err := v.timeout(want.Timeout)
	if err != nil {
		return answer{}, err
	}
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	if s.state == running {
		return answer{status: http.StatusOK, body: s.brief()}, s.prolong(v.clock.Now(), life, false)
	}
	return answer{status: http.StatusCreated, body: s.brief()}, v.wake(s, life)
}

func (v *Vendor) resume(r *http.Request, body []byte) (answer, error) {
	var want struct {
		Timeout   *int `json:"timeout"`
		AutoPause bool `json:"autoPause"`
	}
	if err := read(body, &want); err != nil {
		return answer{}, err
	}
	life, err := v.timeout(want.Timeout)
	if err != nil {
		return answer{}, err
	}
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	if s.state == running {
		return answer{}, fail(http.StatusConflict, fmt.Sprintf("Sandbox %s is already running", s.id))
	}
	return answer{status: http.StatusCreated, body: s.brief()}, v.wake(s, life)
}

// setNetwork replaces the rules for egress; what the request leaves out is cleared. Those for ingress stay.
func (v *Vendor) setNetwork(r *http.Request, body []byte) (answer, error) {
	var want map[string]any
	if err := read(body, &want); err != nil {
		return answer{}, err
	}
	if err := checkNetwork(want); err != nil {
		return answer{}, err
	}
	s, err := v.the(r)
	if err != nil {
		return answer{}, err
	}
	if s.state == paused {
		return answer{}, fail(http.StatusConflict, fmt.Sprintf("Sandbox '%s' is not running", s.id))
	}
	now := map[string]any{}
	for _, kept := range []string{"allowPublicTraffic", "maskRequestHost"} {
		if old, ok := s.network[kept]; ok {
			now[kept] = old
		}
	}
	s.internet = nil
	for name, value := range want {
		if allowed, ok := value.(bool); name == "allow_internet_access" && ok {
			s.internet = &allowed
			continue
		}
		now[name] = value
	}
	s.network = now
	return answer{status: http.StatusNoContent}, nil
}
