package extensions

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Redacted is what a Secret shows in place of its value.
const Redacted = "[redacted]"

// Secret holds a value that must not be printed. Formatting, logging or marshaling
// it yields Redacted. Only Reveal returns the value, and marks the places to
// review.
type Secret struct{ value string }

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{value: value} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// IsZero reports an empty secret.
func (s Secret) IsZero() bool { return s.value == "" }

// FitsHeader reports whether a header can hold it: it has at least one character, and
// none but visible ones of ASCII.
func (s Secret) FitsHeader() bool {
	return s.value != "" && !strings.ContainsFunc(s.value, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (s Secret) String() string { return Redacted }

// Format implements fmt.Formatter, so that no verb prints the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }

// MarshalText implements encoding.TextMarshaler (JSON and YAML included).
func (s Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }

// SecretsDir is the folder of secrets delivered as files: each file has the
// secret's name and its value, byte for byte, and every user of its service can
// read it.
const SecretsDir = "/run/secrets"

// maxFileName is the longest name of a file on Linux, in bytes.
const maxFileName = 255

// Delivery returns SecretsAs, or SecretsEnv if it is "".
func (s Spec) Delivery() SecretDelivery {
	if s.SecretsAs == "" {
		return SecretsEnv
	}
	return s.SecretsAs
}

// CheckSecrets refuses, with KindInvalid, secrets that do not fit an environment
// variable or, with SecretsFile, a file. The error never contains a value.
func (s Spec) CheckSecrets() error {
	if !slices.Contains(SecretDeliveries, s.Delivery()) {
		return Errorf(KindInvalid, "secrets_as %q is not one of %v", Clean(string(s.SecretsAs), 40), SecretDeliveries)
	}
	for name, value := range s.Secrets {
		if !ValidEnvName(name) || strings.ContainsRune(value.Reveal(), 0) {
			return Errorf(KindInvalid, "the secret %q has an invalid name or a NUL byte", Clean(name, 80))
		}
		if s.Delivery() == SecretsFile && (len(name) > maxFileName || strings.Contains(name, "/") || name == "." || name == "..") {
			return Errorf(KindInvalid, "the secret %q is not a valid file name", Clean(name, 80))
		}
	}
	return nil
}
