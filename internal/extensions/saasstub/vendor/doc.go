// Package vendor is the pretend vendor behind the saas-stub extension: a
// metered service whose whole state is one folder, so that it outlives every
// process that talks to it.
//
// The folder holds state.json (objects, snapshots, clock, counters), one tree
// per sandbox, one archive per snapshot, and script.json, which makes the
// service misbehave on purpose. A file lock serialises writers of all
// processes and every write is a rename, so a process killed at any point
// leaves a state that the next one can read.
//
// Nothing runs here: commands are interpreted by a small shell that can reach
// its own sandbox's tree and nothing else of the machine. It is a test double;
// it must not be given code that is not trusted, since that code would share
// the memory and the CPU of the process that interprets it.
package vendor
