package provider

import (
	"sync"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/engine"
)

// fates is what this walk knows of existing sandboxes: which ones it ends, which stay, and which of this
// state's are undecided. Terraform only reads a tainted sandbox and plans its successor as a new resource.
// The zero value knows nothing.
type fates struct {
	mu sync.Mutex
	of map[engine.ID]*fate
	// refreshed is set once a sandbox is read, which a walk that applies never does.
	refreshed bool
}

type fate struct {
	leaves, gone, stays bool
	// wanted holds the warnings about its name, due if it stays.
	wanted []engine.Notice
}

func (f *fates) change(id engine.ID, to func(*fate)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[engine.ID]*fate{}
	}
	if f.of[id] == nil {
		f.of[id] = &fate{}
	}
	to(f.of[id])
}

// ours notes a sandbox of this state.
func (f *fates) ours(id engine.ID) { f.change(id, func(*fate) { f.refreshed = true }) }

// leaves notes that this plan ends a sandbox.
func (f *fates) leaves(id engine.ID) { f.change(id, func(x *fate) { x.leaves = true }) }

// gone notes a sandbox proved absent. Its name is free for whoever asks for it; its hold is not released
// until then.
func (f *fates) gone(id engine.ID) { f.change(id, func(x *fate) { x.gone, f.refreshed = true, true }) }

// stays notes a sandbox that this plan leaves alive, and returns the warnings about its name that waited for
// that.
func (f *fates) stays(id engine.ID) (due []engine.Notice) {
	f.change(id, func(x *fate) { due, x.stays, x.wanted = x.wanted, true, nil })
	return due
}

// wants takes the warning that a new sandbox asks for the name of holder. It returns the warning if the name
// will not be free, and keeps it while that is undecided.
func (f *fates) wants(holder engine.ID, warning engine.Notice, run run) (due []engine.Notice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.of[holder]
	if x == nil && run.unread { // perhaps a tainted one of this state; one that stays is still to be planned
		if f.of == nil {
			f.of = map[engine.ID]*fate{}
		}
		x = &fate{}
		f.of[holder] = x
	}
	switch {
	case run.applies && !f.refreshed: // the create itself is about to report it
	case x == nil: // another state's, or lost by this one
		return []engine.Notice{warning}
	case x.leaves, x.gone, run.replaces:
	case x.stays:
		return []engine.Notice{warning}
	default:
		x.wanted = append(x.wanted, warning)
	}
	return nil
}

// leaving lists the sandboxes this plan ends.
func (f *fates) leaving() (ids []engine.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, x := range f.of {
		if x.leaves {
			ids = append(ids, id)
		}
	}
	return ids
}
