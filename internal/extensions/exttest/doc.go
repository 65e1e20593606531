// Package exttest is the conformance suite of the contract in package
// extensions: every promise in its doc comments is one check with a stable
// name, such as "core/provision-idempotent-by-id".
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
//
// Each check opens the extension at a place of its own (a fresh Config), makes
// what it needs and tears it down again. Checks of a power run where the
// descriptor declares it; the commands they use are plain POSIX ones (sh, cat,
// printf, env, sleep, pwd, mkdir, test). Hooks of the Harness that a place cannot offer
// stay nil; a check that needs one is then skipped with the reason, and with
// SANDBOXER_NO_SKIP=1 that skip is a failure, unless the harness excuses
// the check by name with a reason.
//
// The suite is itself tested: for each check there is an extension broken in
// exactly that way, which must fail it.
package exttest
