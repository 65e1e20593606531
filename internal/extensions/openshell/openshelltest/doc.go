// Package openshelltest is a fake of a gateway of NVIDIA OpenShell, for tests: gRPC on loopback, plain or by mutual TLS, with an
// OIDC issuer beside it, on the stubs made from the vendor's descriptions. A request with a field that those do not know, or one
// that the gateway would not take, fails the test or the call.
//
// A sandbox is a folder that its processes have as their root, with the programs of a static busybox. Its files policy is in
// force, by the owners of files instead of Landlock: what is not listed cannot be read, what is not listed as writable cannot be
// written. Where the vendor's description leaves a behavior open, the fake takes the less comfortable one: a new sandbox is
// ready at the second look, its policy is loaded later still, and one that was deleted is shown once more.
//
// What it cannot show: the network's rules (they are only checked and kept), Landlock and seccomp themselves, what a driver makes
// of an image or a size, what a real supervisor adds to a policy, and what the gateway means where its description is silent.
package openshelltest
