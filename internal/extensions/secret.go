package extensions

import (
	"fmt"
	"log/slog"
)

// Redacted is what a Secret shows in place of its value.
const Redacted = "[redacted]"

// Secret holds a value that must not be printed. Every way of formatting,
// logging or marshalling it yields Redacted; Reveal is the one way to the
// value and marks the places a review has to look at.
type Secret struct{ value string }

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// IsZero reports an empty secret.
func (s Secret) IsZero() bool { return s.value == "" }

func (s Secret) String() string { return Redacted }

// Format implements fmt.Formatter, so that no verb prints the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }

// MarshalText implements encoding.TextMarshaler (JSON and YAML included).
func (s Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }
