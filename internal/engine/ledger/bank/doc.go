// Package bank does the arithmetic of a ledger's money: what a life reserves, what its meter costs, who
// pays, and what is released, owed and limited. It takes plain values and returns what to post; it reads
// no clock and no database. Amounts are nano-units, never floats.
package bank
