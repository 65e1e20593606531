// Package sqlstore keeps a ledger in an SQL database: SQLite in a file, or PostgreSQL if machines share
// it. In one transaction it reads the rows that a change needs, lets bank and chain decide, and writes
// their answer.
//
// Type dialect holds the few things in which databases differ. The schema uses only text and 64-bit
// integers: times are Unix microseconds, JSON is canonical text. This package does no arithmetic of money.
package sqlstore
