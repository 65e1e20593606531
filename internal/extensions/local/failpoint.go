package local

// failpoint is called between the steps of a create, a teardown and a
// snapshot, with the folder concerned; tests replace it to die there.
var failpoint = func(step, dir string) {}
