// Package daytonatest is a fake of Daytona, for tests: its API, the toolbox inside each sandbox and the proxy of their ports, over
// HTTP on loopback, as the vendor's cloud or as the version 0.190 that users run themselves. Every request and every answer is
// validated against the vendor's own descriptions; one that does not conform fails the test, whoever sent it.
//
// A sandbox is a folder that its processes have as their root, with the programs of a static busybox. Changes of state take a
// look at the sandbox each. Where the descriptions leave a behavior open, the fake does the less comfortable one.
//
// What it cannot show: the walls between a sandbox and the world (network rules are only kept and told), sizes, builds of images,
// quotas and bills as they are.
package daytonatest
