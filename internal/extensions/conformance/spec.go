package conformance

import (
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// sandboxTTL is how long a check's sandbox may live: longer than any check takes, and no multiple of any grain.
const sandboxTTL = 30*time.Minute + 17*time.Second

// Option changes the minimal spec.
type Option func(*extensions.Spec)

// Spec returns a minimal valid spec: a fresh id, generation 1, the labels every object carries, half an hour
// to live, network denied, an empty workspace.
func Spec(t TB, cfg extensions.Config, opts ...Option) extensions.Spec {
	t.Helper()
	id, err := extensions.NewID(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	s := extensions.Spec{
		ID: id, Account: cfg.Account, Name: "conformance", Generation: 1,
		CreatedAt: now, Deadline: now.Add(sandboxTTL),
		Profile: "profile.conformance", Version: "1.0.0",
		Network:   extensions.Network{Default: "deny"},
		Workspace: extensions.Workspace{Mode: extensions.WorkspaceRemoteCanonical, Access: extensions.AccessRW},
		Scope:     "session", TTL: extensions.Duration(sandboxTTL),
	}
	for _, o := range opts {
		o(&s)
	}
	if s.Labels == nil {
		s.Labels = Labels(s)
	}
	return s
}

// Labels returns the labels that the engine writes for s.
func Labels(s extensions.Spec) map[string]string {
	return map[string]string{
		extensions.LabelID: string(s.ID), extensions.LabelAccount: s.Account,
		extensions.LabelGeneration: formatInt(s.Generation), extensions.LabelSpecHash: s.Hash(),
		extensions.LabelInitialExpires: s.Deadline.UTC().Format(time.RFC3339),
	}
}

// WithTTL sets how long the sandbox may live from now on.
func WithTTL(d time.Duration) Option {
	return func(s *extensions.Spec) {
		s.TTL, s.Deadline = extensions.Duration(d), s.CreatedAt.Add(d)
	}
}

// WithEnv sets one environment variable.
func WithEnv(name, value string) Option {
	return func(s *extensions.Spec) {
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[name] = value
	}
}

// WithSecret sets one secret, as an environment variable unless WithSecretsAs says otherwise.
func WithSecret(name, value string) Option {
	return func(s *extensions.Spec) {
		if s.Secrets == nil {
			s.Secrets = map[string]extensions.Secret{}
		}
		s.Secrets[name] = extensions.NewSecret(value)
		s.SecretNames = append(s.SecretNames, name)
	}
}

// WithSecretsAs sets how secrets are delivered.
func WithSecretsAs(as extensions.SecretDelivery) Option {
	return func(s *extensions.Spec) { s.SecretsAs = as }
}

// WithWorkspace fills the workspace with files, by name.
func WithWorkspace(access string, files map[string]string) Option {
	return func(s *extensions.Spec) {
		s.Workspace.Access = access
		s.Workspace.Source = newSource(files)
	}
}

// With returns fn as an Option.
func With(fn func(*extensions.Spec)) Option { return fn }
