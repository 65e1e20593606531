// Package modaltest is a fake of the vendor Modal, for tests: its control plane and the routers of tasks, over gRPC on
// loopback, with both backends, on the stubs of the vendor's SDK. A request with a field that the stubs do not know, or
// one that the vendor would not take, fails the test or the call.
//
// A sandbox is a folder that its processes have as their root, with the programs of a static busybox. Where the
// vendor's description leaves a behavior open, the fake takes the less comfortable one: a new sandbox has no task at the
// first look, one that was terminated is shown once more, an image is built while its caller waits, and V1 and V2 keep
// names apart.
//
// What it cannot show: the walls between a sandbox and the world (network rules are only kept and told), what images
// hold, quotas and bills as they are, and what the vendor's servers mean where their description is silent.
package modaltest
