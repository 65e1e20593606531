// Package httpledger is a ledger at a distance: a server that gives out another
// ledger over HTTP, to each client what its token allows, and the client, which
// is a ledger.Ledger at https://host.
//
// Every operation is one POST of JSON to /v1/ledger/ and the operation's name,
// with a bearer token; see routes. Every write has a key that makes it happen
// once, so that a lost answer is settled by asking again.
package httpledger
