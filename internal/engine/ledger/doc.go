// Package ledger remembers what was asked for, what exists, what it costs and
// how it came to be. The engine writes to it before anything can cost money,
// and every move of a sandbox is one compare-and-set transaction together with
// its event.
//
// [Open] gives a [Ledger]. There is one SQL implementation; the few things in
// which databases differ are in type dialect. The schema uses text and 64-bit
// integers only: times are Unix microseconds, JSON is canonical text.
//
// No secret enters: the types hold references, and the request is stored
// without its secret part.
package ledger
