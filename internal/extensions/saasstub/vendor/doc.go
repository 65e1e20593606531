// Package vendor is the pretend vendor behind the saas-stub extension: a metered service whose whole state is
// one folder, so that it outlives every process that talks to it.
//
// The folder holds state.json (objects, snapshots, clock, counters), one tree per sandbox, one archive per
// snapshot, and script.json, which makes the service misbehave on purpose. A file lock serializes the writers
// of all processes and every write is a rename, so a process killed at any point leaves a state that the next
// one can read.
//
// Nothing runs here: a small shell that reaches only its own sandbox's tree interprets commands. It is a test
// double; do not give it untrusted code, which would share the memory and CPU of the process that interprets
// it.
package vendor
