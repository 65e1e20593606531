// Package ledger remembers what was requested, what exists, what it costs and how it came to be. The
// engine writes to it before anything can cost money. Every state change of a sandbox is one
// compare-and-set transaction together with its event.
//
// This package holds the types and the views of a ledger, one per kind of caller. Package bank does the
// arithmetic of money, chain the form and digests of events; sqlstore is the only store and opens it.
//
// No secret is stored: the types hold references, and requests are stored without their secrets.
package ledger
