package place

import "testing"

func TestRedactionHidesSecretsAndLeavesWordsAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		secrets []string
		want    string
	}{
		{"key sk-1234567890 is refused", []string{"sk-1234567890"}, "key [redacted] is refused"},
		{"xsk-1234567890y", []string{"sk-1234567890"}, "x[redacted]y"},
		{"the word pass in a password, pass", []string{"pass"}, "the word [redacted] in a password, [redacted]"},
		{"passpass pass_x", []string{"pass"}, "passpass pass_x"},
		{"long-secret-value and long-secret", []string{"long-secret-value", "long-secret"}, "[redacted] and [redacted]"},
		{"pässé", []string{"ssss"}, "pässé"},
		{"", []string{"secret-secret"}, ""},
	} {
		if got := redact(c.text, c.secrets); got != c.want {
			t.Errorf("%q without %q: %q, want %q", c.text, c.secrets, got, c.want)
		}
	}
}
