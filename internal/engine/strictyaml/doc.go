// Package strictyaml decodes hand-written YAML into Go structs and reports every mistake at once, each
// with its file, line and column. A syntax error ends the reading and has no column.
//
// It accepts less than YAML does: one document, no tags, no merge keys, no duplicate or unknown keys, no
// control characters, at most MaxBytes bytes, MaxDepth levels and MaxNodes values with aliases followed.
// It converts no types: a number where text is wanted is an error that asks for quotes, because "1.10" and
// 1.10 are different versions.
package strictyaml

// Limits of one document. They bound work and memory for any input.
const (
	MaxBytes = 1 << 20 // bytes of a file
	MaxDepth = 40      // levels of nesting
	MaxNodes = 100_000 // values, with aliases followed
	maxKey   = 256     // bytes of a key
	maxFound = 50      // errors reported at once
)
