// Package extensions is the contract between the engine and the places where
// sandboxes run. It imports the standard library only.
//
// An [Extension] is one kind of place (this machine, Docker over SSH, a vendor's
// API). Opening it gives a [Backend]: one account of a vendor or one host the user
// owns. Each capability beyond the core is one small interface (see powers.go),
// declared in its [Descriptor]. The conformance suite in package exttest fails
// unless a backend implements exactly the powers it declares.
//
// The engine decides; an extension does. An extension never retries, never
// reads a clock to decide expiry policy, never chooses another place, and
// never sees Terraform. It classifies its own failures once, in its errors.go,
// into a [Kind]; nobody matches error text anywhere else.
package extensions
