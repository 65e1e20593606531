package provider

import (
	"context"
	"log/slog"
	"slices"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// logHandler passes the engine's log to Terraform's. base carries the logger of the Configure call, for
// records written without a request's context.
type logHandler struct {
	base  context.Context //nolint:containedctx // holds values only, never canceled
	attrs []slog.Attr
	group string
}

func newLogHandler(ctx context.Context) *logHandler {
	return &logHandler{base: context.WithoutCancel(ctx)}
}

// Enabled implements slog.Handler; Terraform filters by level itself.
func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if ctx == nil || ctx == context.Background() {
		ctx = h.base
	}
	fields := map[string]any{}
	for _, a := range h.attrs {
		addField(fields, "", a)
	}
	r.Attrs(func(a slog.Attr) bool { addField(fields, h.group, a); return true })
	switch {
	case r.Level >= slog.LevelError:
		tflog.Error(ctx, r.Message, fields)
	case r.Level >= slog.LevelWarn:
		tflog.Warn(ctx, r.Message, fields)
	case r.Level >= slog.LevelInfo:
		tflog.Info(ctx, r.Message, fields)
	default:
		tflog.Debug(ctx, r.Message, fields)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	out.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		a.Key = h.group + a.Key
		out.attrs = append(out.attrs, a)
	}
	return &out
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	out := *h
	if name != "" {
		out.group = h.group + name + "."
	}
	return &out
}

// addField resolves a (a Secret resolves to its redaction) and flattens groups.
func addField(fields map[string]any, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range v.Group() {
			addField(fields, prefix, inner)
		}
		return
	}
	if err, ok := v.Any().(error); ok {
		fields[prefix+a.Key] = err.Error()
		return
	}
	if a.Key != "" {
		fields[prefix+a.Key] = v.String()
	}
}
