-- What a probe found at one place. One place's facts never stand in for
-- another's: host is '' for a vendor's account; host_ref and config are what was
-- probed, so that other arguments of the same names are another place.
CREATE TABLE facts (
  account   TEXT NOT NULL,
  extension TEXT NOT NULL,
  host      TEXT NOT NULL,
  host_ref  TEXT NOT NULL,
  config    TEXT NOT NULL,
  found     TEXT NOT NULL,
  probed_at BIGINT NOT NULL,
  PRIMARY KEY (account, extension, host)
);
