// Package verceltest is a fake of Vercel's Sandbox API, for tests, over HTTP on loopback. Every request and every answer is
// validated against spec/openapi.yaml, and one that does not conform fails the test, whoever sent it.
//
// A sandbox is a folder that its processes have as their root, with the programs of a static busybox. A session begins, stops
// and is metered asynchronously. Where the description leaves a behavior open, the fake takes the less comfortable one.
//
// What it cannot show: the walls between a sandbox and the world (network policies are only kept and told), quotas, rates and
// bills as they are, and which image has which programs.
package verceltest
