package vendor

import "maps"

// hide takes away what other teams than that of a key have. show brings it back, and makes what is new the team's.
func (st *state) hide(s Script, key string) (show func()) {
	if s.Teams == nil {
		return func() {}
	}
	team := s.Teams[key]
	objects, snapshots := map[string]*Object{}, map[string]*Snapshot{}
	maps.Copy(objects, st.Objects)
	maps.Copy(snapshots, st.Snapshots)
	maps.DeleteFunc(objects, func(_ string, o *Object) bool { return o.Team == team })
	maps.DeleteFunc(snapshots, func(_ string, s *Snapshot) bool { return s.Team == team })
	maps.DeleteFunc(st.Objects, func(_ string, o *Object) bool { return o.Team != team })
	maps.DeleteFunc(st.Snapshots, func(_ string, s *Snapshot) bool { return s.Team != team })
	return func() {
		for _, o := range st.Objects {
			o.Team = team
		}
		for _, s := range st.Snapshots {
			s.Team = team
		}
		maps.Copy(st.Objects, objects)
		maps.Copy(st.Snapshots, snapshots)
	}
}
