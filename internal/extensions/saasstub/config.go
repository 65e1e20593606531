package saasstub

import (
	"path/filepath"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	fieldDir      = "dir"
	fieldRegion   = "region"
	fieldLag      = "lag"
	credentialKey = "api_key"
)

type config struct {
	dir    string
	region string
	lag    time.Duration
}

func parseConfig(e extension, cfg extensions.Config) (config, error) {
	if err := extensions.CheckFields("config", e.Describe().Config, cfg.Values); err != nil {
		return config{}, err
	}
	c := config{dir: text(cfg.Values, fieldDir), region: text(cfg.Values, fieldRegion)}
	if c.dir == "" {
		if cfg.StateDir == "" {
			return c, extensions.Errorf(extensions.KindInvalid, "config.dir: no folder is given and there is no state folder").
				WithRemedy("set config.dir of the binding")
		}
		c.dir = filepath.Join(cfg.StateDir, e.handler())
	}
	abs, err := filepath.Abs(c.dir)
	if err != nil {
		return c, extensions.Errorf(extensions.KindInvalid, "config.dir: %w", err)
	}
	c.dir = abs
	if !e.eventual {
		return c, nil
	}
	c.lag = Lag
	if s := text(cfg.Values, fieldLag); s != "" {
		if c.lag, err = time.ParseDuration(s); err != nil || c.lag < 0 || c.lag > Settle {
			return c, extensions.Errorf(extensions.KindInvalid, "config.lag: %q is not a duration from 0s to %s", s, Settle)
		}
	}
	return c, nil
}

func text(values map[string]any, key string) string {
	s, _ := values[key].(string)
	return s
}
