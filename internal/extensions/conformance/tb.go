package conformance

// TB is what the suite needs of a test. A testing.TB is one, and so is the Trial of a run without package testing.
type TB interface {
	Helper()
	Log(args ...any)
	Logf(format string, args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	Skipf(format string, args ...any)
	Cleanup(fn func())
	TempDir() string
}
