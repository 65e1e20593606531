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
	fieldPlan     = "plan"
	credentialKey = "api_key"
)

type config struct {
	dir    string
	region string
	lag    time.Duration
	trial  bool
}

func parseConfig(e extension, cfg extensions.Config) (config, error) {
	if err := extensions.CheckFields("config", e.Describe().Config, cfg.Values); err != nil {
		return config{}, err
	}
	c := config{
		dir:    extensions.Text(cfg.Values, fieldDir),
		region: extensions.Text(cfg.Values, fieldRegion),
		trial:  extensions.Text(cfg.Values, fieldPlan) == planTrial,
	}
	if c.dir == "" {
		if cfg.StateDir == "" {
			return c, extensions.Errorf(extensions.KindInvalid, "config.dir: neither config.dir nor a state folder is set").
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
	if s := extensions.Text(cfg.Values, fieldLag); s != "" {
		if c.lag, err = time.ParseDuration(s); err != nil || c.lag < 0 || c.lag > Settle {
			return c, extensions.Errorf(extensions.KindInvalid, "config.lag: %q is not a duration between 0s and %s", s, Settle)
		}
	}
	return c, nil
}
