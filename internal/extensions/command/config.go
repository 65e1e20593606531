package command

import (
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// The fields of a binding's config, of a profile's options, and the credential.
const (
	fieldCommand  = "command"
	fieldManifest = "manifest"
	fieldSettings = "settings"
	fieldTimeout  = "timeout"
	fieldInput    = "input"
	fieldToken    = "token"
)

// The bounds of one run of the program; exec has the command's own.
const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = time.Hour
)

var configFields = []extensions.Field{
	{Name: fieldCommand, Type: extensions.FieldString, Required: true,
		Doc: "Absolute path of the program. Only root and you may be able to write it or a folder above it."},
	{Name: fieldManifest, Type: extensions.FieldJSON, Required: true,
		Doc: "What the program can do; see the guide *Write an extension*. `sandboxer extension test` checks that."},
	{Name: fieldSettings, Type: extensions.FieldJSON, Doc: "What the program gets as `settings` with each request."},
	{Name: fieldTimeout, Type: extensions.FieldDuration, Doc: "Time limit of one run of the program; default `2m`, at most `1h`. " +
		"The program is then killed. A command inside has its own limit."},
}

var optionFields = []extensions.Field{
	{Name: fieldInput, Type: extensions.FieldJSON, Doc: "What the program gets as `spec.options.input` of a sandbox."},
}

type settings struct {
	command  string
	binding  string
	account  string
	stateDir string
	token    extensions.Secret
	values   any
	timeout  time.Duration
}

func parseConfig(cfg extensions.Config) (settings, error) {
	if err := extensions.CheckFields("config", configFields, cfg.Values); err != nil {
		return settings{}, err
	}
	s := settings{binding: cfg.Binding, account: cfg.Account, token: cfg.Credentials[fieldToken], values: cfg.Values[fieldSettings],
		timeout: defaultTimeout}
	s.command, _ = cfg.Values[fieldCommand].(string)
	if cfg.StateDir != "" {
		s.stateDir = filepath.Join(cfg.StateDir, "command", cfg.Binding)
	}
	if text, ok := cfg.Values[fieldTimeout].(string); ok {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 || d > maxTimeout {
			return s, extensions.Errorf(extensions.KindInvalid, "config.timeout: %q is not a duration up to %s",
				extensions.Clean(text, 80), maxTimeout)
		}
		s.timeout = d
	}
	if cfg.Host != nil {
		return s, extensions.Errorf(extensions.KindInvalid, "the binding %s runs a program, so it has no hosts", cfg.Binding)
	}
	return s, checkPath(s.command)
}

func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || !extensions.OneLine(path) {
		return extensions.Errorf(extensions.KindInvalid, "config.command: %q is not a clean absolute path", extensions.Clean(path, 200)).
			WithRemedy("give the program's path from the root, without `..`")
	}
	return nil
}
