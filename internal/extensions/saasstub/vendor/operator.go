package vendor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Objects returns every object in the service, oldest first.
func (v *Vendor) Objects() ([]Object, error) {
	var out []Object
	err := v.update(func(st *state) error {
		for _, o := range st.Objects {
			out = append(out, o.clone())
		}
		return nil
	})
	slices.SortFunc(out, func(a, b Object) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, err
}

// Snapshots returns every snapshot in the service, oldest first.
func (v *Vendor) Snapshots() ([]Snapshot, error) {
	var out []Snapshot
	err := v.update(func(st *state) error {
		for _, s := range st.Snapshots {
			out = append(out, *s)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b Snapshot) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return out, err
}

// Calls counts the calls to the service, by operation.
func (v *Vendor) Calls() (map[Op]int64, error) {
	var out map[Op]int64
	err := v.update(func(st *state) error {
		out = maps.Clone(st.Calls)
		return nil
	})
	return out, err
}

// Now returns the service's time.
func (v *Vendor) Now() (now time.Time, err error) {
	err = v.update(func(st *state) error {
		now = st.now()
		return nil
	})
	return now, err
}

// Advance moves the service's clock by d and ends what is then overdue.
func (v *Vendor) Advance(d time.Duration) error {
	err := v.update(func(st *state) error {
		st.Offset += Duration(d)
		return nil
	})
	if err != nil {
		return err
	}
	return v.update(func(*state) error { return nil }) // ends what became overdue
}

// object lets fn change the object with that name.
func (v *Vendor) object(name string, fn func(*state, *Object) error) error {
	return v.update(func(st *state) error {
		if o := st.byName(name); o != nil {
			return fn(st, o)
		}
		return fmt.Errorf("no object named %q", name)
	})
}

// Vanish makes the object with that name disappear, as if it had never existed.
func (v *Vendor) Vanish(name string) error { return v.object(name, v.drop) }

// Fail ends the object with that name by a fault of the service.
func (v *Vendor) Fail(name, reason string) error {
	return v.object(name, func(st *state, o *Object) error {
		o.end(StateFailed, st.now(), reason)
		return nil
	})
}

// Heard reports whether an object sent the word into the pretended world, or looked up a name with it.
func (v *Vendor) Heard(word string) (heard bool, err error) {
	err = v.update(func(st *state) error {
		heard = slices.ContainsFunc(st.Heard, func(w string) bool { return strings.Contains(w, word) })
		return nil
	})
	return heard, err
}

// Publish lets anybody reach the ports of the object with that name.
func (v *Vendor) Publish(name string) error {
	return v.object(name, func(_ *state, o *Object) error {
		o.Public = true
		return nil
	})
}

// Knock reports whether a stranger reaches the ports of the object with that name.
func (v *Vendor) Knock(name string) (answers bool, err error) {
	err = v.object(name, func(_ *state, o *Object) error {
		answers = o.Public && o.Live()
		return nil
	})
	return answers, err
}

// Send makes the object with that name send that many more bytes.
func (v *Vendor) Send(name string, bytes int64) error {
	return v.object(name, func(_ *state, o *Object) error {
		o.Sent += bytes
		return nil
	})
}

// Relabel rewrites one label of the object with that name.
func (v *Vendor) Relabel(name, key, value string) error {
	return v.object(name, func(_ *state, o *Object) error {
		o.Labels[key] = value
		return nil
	})
}

// RelabelSnapshot renames a snapshot, given by the service's reference.
func (v *Vendor) RelabelSnapshot(ref, name string) error {
	return v.update(func(st *state) error {
		s := st.Snapshots[ref]
		if s == nil {
			return fmt.Errorf("no snapshot %q", ref)
		}
		s.Name = name
		return nil
	})
}
