package daytonatest

import (
	"encoding/json"
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
	if err := v.within(s, s); err != nil {
		return nil, err
	}
	if s.state == "paused" {
		v.do(s.Thaw())
	}
	v.begin(s, to)
	return v.shown(s, "Sandbox"), nil
}

// resize gives what runs more cores and memory, and what is stopped any, and a larger disk.
func (v *Vendor) resize(s *sandbox, _ *http.Request, body []byte) (any, error) {
	want := struct{ CPU, Memory, Disk int }{s.cpu, s.memory, s.disk}
	if err := json.Unmarshal(body, &want); err != nil {
		return nil, err
	}
	switch {
	case s.state != "started" && s.state != "stopped":
		return nil, fail(http.StatusBadRequest, "Sandbox must be in started or stopped state to resize")
	case s.class != Container || s.gpu > 0:
		return nil, fail(http.StatusBadRequest, "Resizing is not supported for this sandbox")
	case want.Disk < s.disk:
		return nil, fail(http.StatusBadRequest, "Sandbox disk size cannot be decreased")
	case s.state == "started" && want.Disk > s.disk:
		return nil, fail(http.StatusBadRequest, "Disk resize requires the sandbox to be stopped")
	case s.state == "started" && (want.CPU < s.cpu || want.Memory < s.memory):
		return nil, fail(http.StatusBadRequest, "Sandbox must be stopped to decrease its CPU or memory")
	}
	larger := *s
	larger.cpu, larger.memory, larger.disk = want.CPU, want.Memory, want.Disk
	if err := v.within(s, &larger); err != nil {
		return nil, err
	}
	v.begin(s, "resizing")
	s.cpu, s.memory, s.disk = want.CPU, want.Memory, want.Disk
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
