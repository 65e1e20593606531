// Package conformance is the conformance suite of the contract in package extensions: each promise in its doc
// comments is one check with a stable name, such as "core/provision-idempotent-by-id". It does without package
// testing, so that a release can hold an extension to it; Go tests use it through package exttest.
//
// Each check opens the extension at its own place (a fresh Config), creates what it needs and tears it down
// again. Those that mind nothing another has left take turns with one sandbox, group by group, which is replaced
// once a check has ended it: at a real vendor, each sandbox costs time and money. A power's checks run if the
// descriptor declares it; their commands are plain POSIX ones (sh, cat, printf, env, sleep, pwd, mkdir, rm, ln,
// test). Harness hooks that a place cannot offer stay nil. A check that needs one is then skipped with the
// reason; with SANDBOXER_NO_SKIP=1 that skip is a failure, unless the harness excuses the check by name with a
// reason.
//
// The suite is itself tested: for each check there is an extension broken in exactly that way, which must
// fail it.
package conformance
