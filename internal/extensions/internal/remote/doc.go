// Package remote reaches a host over SSH and runs POSIX sh scripts there. It is
// the only place that dials a host.
//
// All clients of one host in a process share its connections: there is one, a
// second only while the sessions of the first are all in use, and never a
// third; who comes later waits in line. A connection that has died is replaced
// once, as long as the script was not handed over; a script that may have
// started is never started again (KindIndeterminate).
//
// A script is one exec. The command line is the same for every script and is
// valid in any login shell; the script, its variables and its payload travel on
// stdin, so nothing of them shows in a process list. What the host prints before
// the script begins (motd, rc files) is dropped. A script outlives its
// connection: one that was cut off, or whose caller gave up, runs to its end.
//
// A Call's script has these functions, see prelude.sh:
//
//	answer [doc]                  hand over the one JSON document, from $1 or stdin
//	fail kind message [remedy]    answer with an error of that extensions.Kind and exit
//	progress text                 a line for Call.Progress
//	json_string [text]            text, or stdin less its last newline, as a JSON string
//
// A script's stdin is its payload; commands that are not to eat it need
// </dev/null. Locale is C and SIGPIPE is ignored in a Call, so that the loss of
// the connection ends no command half-way.
package remote
