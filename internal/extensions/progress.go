package extensions

import "context"

// progressKey is the context's key of the listener.
type progressKey struct{}

// ProgressFunc receives what takes long: of a subject ("Pulling python:3.12"), how far
// it is. It must not block.
type ProgressFunc func(subject, detail string)

// WithProgress returns a context whose operations report to tell, and to whom those of ctx report.
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

// Progress reports how far an operation is. Adapters report as often as they learn
// something; the engine bounds what people see. It holds no secret.
func Progress(ctx context.Context, subject, detail string) {
	if tell, ok := ctx.Value(progressKey{}).(ProgressFunc); ok && tell != nil {
		tell(Clean(subject, 200), Clean(detail, 200))
	}
}
