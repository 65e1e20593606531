// Package profile turns what a user asks for into a frozen request. A [Profile] is partial and may extend
// another; a [Set] holds all profiles of a catalog; [Resolve] merges the chosen profile with its
// ancestors, checks the caller's [Request] against it and returns a complete extensions.Spec with the
// rules of routing beside it. The package is pure: no I/O, no clock, no randomness.
//
// # Inheritance
//
// A profile extends at most one other. The child wins:
//
//   - scalars override; null and absent both mean "as in the parent";
//   - maps and sections merge key by key, at every depth;
//   - lists replace, an empty list included; those of toolchain add up, ancestors' entries
//     first and each once, and an empty list drops them;
//   - in toolchain.env, a child's ${NAME} of the variable itself is the parent's value;
//   - of a choice, the child's alternative replaces the parent's as a whole: image, compose
//     or containers; pull, build or stages; command, http or tcp;
//   - `default: allow` drops the parent's egress rules, which only have a meaning under
//     `default: deny`.
//
// id, version and extends are not inherited.
package profile
