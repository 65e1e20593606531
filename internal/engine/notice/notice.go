// Package notice has the messages of an operation beside its result.
package notice

import "fmt"

// Notice is a message that does not stop the work.
type Notice struct {
	Summary string
	Detail  string
	// Progress says how far long work is: Summary is its subject, Detail what is done of it.
	Progress bool
}

// Notify receives notices while an operation runs; nil ignores them.
type Notify func(Notice)

// Tell sends a notice; args belong to format.
func (n Notify) Tell(summary, format string, args ...any) {
	if n != nil {
		n(Notice{Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
}
