package daytonatest

import (
	"net/http"
	"slices"
)

// do tells of what the machine refuses.
func (v *Vendor) do(err error) {
	if err != nil {
		v.t.Errorf("the fake of Daytona is broken: %v", err)
	}
}

// stop ends what runs. A sandbox that is deleted at its stop goes.
func (v *Vendor) stop(s *sandbox, _ *http.Request, _ []byte) (any, error) {
	if s.state != "started" && s.state != "paused" {
		return nil, fail(http.StatusBadRequest, "Sandbox is not in a stoppable state")
	}
	v.do(s.Kill())
	s.desktop = false
	if s.autoDelete == 0 {
		v.begin(s, "destroying")
	} else {
		v.begin(s, "stopping")
	}
	return v.shown(s, "Sandbox"), nil
}

// pause holds what runs, in a virtual machine.
func (v *Vendor) pause(s *sandbox, _ *http.Request, _ []byte) (any, error) {
	switch {
	case s.state != "started":
		return nil, fail(http.StatusBadRequest, "Sandbox must be in started state to pause")
	case s.class != VM:
		return nil, fail(http.StatusUnprocessableEntity, "Pausing is not supported for this sandbox")
	}
	v.do(s.Freeze())
	v.begin(s, "pausing")
	return v.shown(s, "Sandbox"), nil
}

// start starts what was stopped, and resumes what was paused.
func (v *Vendor) start(s *sandbox, _ *http.Request, _ []byte) (any, error) {
	to, can := map[string]string{"stopped": "starting", "archived": "restoring", "archiving": "restoring", "paused": "resuming"}[s.state]
	switch {
	case s.state == "started":
		return v.shown(s, "Sandbox"), nil
	case !can:
		return nil, fail(http.StatusBadRequest, "Sandbox state change in progress")
	}
	if err := v.within(s); err != nil {
		return nil, err
	}
	if s.state == "paused" {
		v.do(s.Thaw())
	}
	v.begin(s, to)
	return v.shown(s, "Sandbox"), nil
}

func (v *Vendor) archive(s *sandbox, _ *http.Request, _ []byte) (any, error) {
	if s.state != "stopped" || s.class != Container {
		return nil, fail(http.StatusBadRequest, "Sandbox is not stopped")
	}
	v.begin(s, "archiving")
	return v.shown(s, "Sandbox"), nil
}

// uses are the cores, memory and disk of a sandbox that count: what is stopped has its disk, what is archived has nothing.
func (s *sandbox) uses() (cpu, memory, disk int) {
	switch {
	case slices.Contains([]string{"archived", "destroying", "build_failed"}, s.state):
		return 0, 0, 0
	case slices.Contains([]string{"stopped", "paused"}, s.state):
		return 0, 0, s.disk
	}
	return s.cpu, s.memory, s.disk
}
