// Package exttest runs the conformance suite of package conformance in a Go test.
//
// An adapter plugs in with one test:
//
//	func TestConformance(t *testing.T) {
//		exttest.Run(t, exttest.Harness{
//			New: func(testing.TB) extensions.Extension { return mine.New() },
//			Config: func(t testing.TB) extensions.Config {
//				return extensions.Config{Binding: "ext.mine", Account: "acme/web", StateDir: t.TempDir()}
//			},
//		})
//	}
package exttest
