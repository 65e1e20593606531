// Package meter turns prices and durations into money: quotes before a sandbox exists, charge lines after
// it has ended. It is pure: no I/O, no clock, no randomness.
//
// Amounts are int64 nano-units of a currency, unit prices int64 pico-units, and quantities integers of a
// unit's quantum (milli-vCPU x ms, MiB x ms, ms, bytes, a count). A product has 128 bits. Each charge line
// is rounded once, half up; a reservation is rounded up instead. There are no floats, and an overflow is
// an error.
//
// Quotes and settlements use the same function over the same [PriceSnapshot], so for the same duration
// they agree to the nano-unit.
package meter
