package local

// failpoint is called between the steps of a create and a teardown; tests
// replace it to die there.
var failpoint = func(string) {}
