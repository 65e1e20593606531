package extensions

import "context"

// progressKey is the context's key of the listener.
type progressKey struct{}

// ProgressFunc receives the progress (detail) of a long step (subject, such as "Pulling
// python:3.12"). It must not block.
type ProgressFunc func(subject, detail string)

// WithProgress returns a context whose operations report to tell, and also to the
// listener of ctx.
func WithProgress(ctx context.Context, tell ProgressFunc) context.Context {
	if outer, ok := ctx.Value(progressKey{}).(ProgressFunc); ok && outer != nil {
		inner := tell
		tell = func(subject, detail string) {
			outer(subject, detail)
			inner(subject, detail)
		}
	}
	return context.WithValue(ctx, progressKey{}, tell)
}

// Progress reports the progress of an operation. Adapters report every change; the
// engine limits what people see. Texts must not contain secrets.
func Progress(ctx context.Context, subject, detail string) {
	if tell, ok := ctx.Value(progressKey{}).(ProgressFunc); ok && tell != nil {
		tell(Clean(subject, 200), Clean(detail, 200))
	}
}
