// Package notice is what an operation tells on its way and beside its result.
package notice

import "fmt"

// Notice is something worth telling that does not stop the work.
type Notice struct {
	Summary string
	Detail  string
}

// Notify receives notices while an operation runs; nil ignores them.
type Notify func(Notice)

// Tell sends a notice; args belong to format.
func (n Notify) Tell(summary, format string, args ...any) {
	if n != nil {
		n(Notice{Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
}
