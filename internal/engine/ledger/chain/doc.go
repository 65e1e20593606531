// Package chain is the record of a ledger: events in canonical form, each hash covering the previous one,
// with digests of the rows they cover. It also checks copies of the record. It reads no clock and no
// database.
package chain
