// Package remote reaches a host over SSH and runs POSIX sh scripts there. Only this package dials a host.
//
// All clients of one host in a process share its connections. There is one, and a second only while all
// sessions of the first are in use; never a third. Later callers wait in line. A dead connection is replaced
// once, as long as the script was not handed over; a script that may have started is never started again
// (KindIndeterminate).
//
// A script is one exec. The command line is the same for every script and valid in any login shell. The
// script, its variables and its payload travel on stdin, so nothing of them shows in a process list. What the
// host prints before the script starts (motd, rc files) is dropped. A script outlives its connection: if the
// connection is cut or the caller gives up, it runs to its end.
//
// A Call's script has these functions, see prelude.sh:
//
//	answer [doc]                  hand over the one JSON document, from $1 or stdin
//	fail kind message [remedy]    answer with an error of that extensions.Kind and exit
//	progress text                 a line for Call.Progress
//	json_text text                sets json to text as a JSON string
//	json_string [text]            prints text, or stdin less its last newline, as a JSON string
//
// A script's stdin is its payload; commands that must not consume it need </dev/null. The locale is C. A Call
// ignores SIGPIPE, so that losing the connection ends no command half-way.
package remote
