package pgtest

import (
	"fmt"
	"testing"
	"time"
)

// OwnClock gives the database its own clock, which Advance moves, for sessions that begin afterwards.
func OwnClock(t testing.TB, address string) {
	t.Helper()
	Exec(t, address, `CREATE SCHEMA clock;
		CREATE TABLE clock.ahead (by interval NOT NULL);
		INSERT INTO clock.ahead VALUES ('0');
		CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
			AS 'SELECT pg_catalog.clock_timestamp() + by FROM clock.ahead';
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, clock, pg_catalog', current_database()); END $$`)
}

// Advance moves the clock of OwnClock; a negative d moves it back.
func Advance(t testing.TB, address string, d time.Duration) {
	t.Helper()
	Exec(t, address, fmt.Sprintf("UPDATE clock.ahead SET by = by + '%d microseconds'", d.Microseconds()))
}
