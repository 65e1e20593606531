-- TEXT and BIGINT only. Times are Unix microseconds, 0 = not set. JSON is
-- canonical text, '' = none. NULL is used only where it takes a row out of a
-- unique index: released names, closed meters, finished intents.

CREATE TABLE streams (
  stream TEXT NOT NULL PRIMARY KEY,
  seq    BIGINT NOT NULL,
  hash   TEXT NOT NULL
);

CREATE TABLE events (
  stream    TEXT NOT NULL,
  seq       BIGINT NOT NULL,
  hash      TEXT NOT NULL UNIQUE,
  prev_hash TEXT NOT NULL,
  type      TEXT NOT NULL,
  subject   TEXT NOT NULL,
  operation TEXT UNIQUE,
  time      BIGINT NOT NULL,
  body      TEXT NOT NULL,
  PRIMARY KEY (stream, seq)
);
CREATE INDEX events_subject ON events (subject);

CREATE TABLE price_books (
  sha256  TEXT NOT NULL PRIMARY KEY,
  source  TEXT NOT NULL,
  version TEXT NOT NULL,
  as_of   TEXT NOT NULL,
  body    TEXT NOT NULL
);

CREATE TABLE quotes (
  digest     TEXT NOT NULL PRIMARY KEY,
  body       TEXT NOT NULL,
  prices     TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE hosts (
  account    TEXT NOT NULL,
  name       TEXT NOT NULL,
  ref        TEXT NOT NULL,
  facts      TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (account, name)
);

CREATE TABLE sandboxes (
  id              TEXT NOT NULL PRIMARY KEY,
  account         TEXT NOT NULL,
  name            TEXT NOT NULL,
  claim           TEXT,
  state           TEXT NOT NULL,
  mode            TEXT NOT NULL,
  generation      BIGINT NOT NULL,
  fence           BIGINT NOT NULL,
  profile         TEXT NOT NULL,
  profile_version TEXT NOT NULL,
  spec_hash       TEXT NOT NULL,
  request         TEXT NOT NULL,
  spec            TEXT NOT NULL,
  route           TEXT NOT NULL,
  quote_digest    TEXT NOT NULL,
  extension       TEXT NOT NULL,
  host            TEXT NOT NULL,
  host_ref        TEXT NOT NULL,
  handle          TEXT NOT NULL,
  reachability    TEXT NOT NULL,
  workspace_base  TEXT NOT NULL,
  ttl             BIGINT NOT NULL,
  max_ttl         BIGINT NOT NULL,
  created_at      BIGINT NOT NULL,
  ready_at        BIGINT NOT NULL,
  expires_at      BIGINT NOT NULL,
  seen_alive_at   BIGINT NOT NULL,
  ended_at        BIGINT NOT NULL,
  updated_at      BIGINT NOT NULL,
  reason          TEXT NOT NULL,
  end_reason      TEXT NOT NULL,
  end_estimated   BIGINT NOT NULL,
  UNIQUE (account, claim)
);
CREATE INDEX sandboxes_state ON sandboxes (state, expires_at);

CREATE TABLE intents (
  op_key      TEXT NOT NULL PRIMARY KEY,
  kind        TEXT NOT NULL,
  subject     TEXT NOT NULL,
  account     TEXT NOT NULL,
  state       TEXT NOT NULL,
  open_key    TEXT UNIQUE,
  holder      TEXT NOT NULL,
  fence       BIGINT NOT NULL,
  generation  BIGINT NOT NULL,
  detail      TEXT NOT NULL,
  reason      TEXT NOT NULL,
  started_at  BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  UNIQUE (subject, fence)
);

CREATE TABLE snapshots (
  id         TEXT NOT NULL PRIMARY KEY,
  account    TEXT NOT NULL,
  name       TEXT NOT NULL,
  sandbox_id TEXT NOT NULL REFERENCES sandboxes (id),
  state      TEXT NOT NULL,
  fence      BIGINT NOT NULL,
  extension  TEXT NOT NULL,
  host       TEXT NOT NULL,
  host_ref   TEXT NOT NULL,
  handle     TEXT NOT NULL,
  kind       TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,
  digest     TEXT NOT NULL,
  request    TEXT NOT NULL,
  reason     TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX snapshots_sandbox ON snapshots (sandbox_id);

CREATE TABLE meters (
  id            TEXT NOT NULL PRIMARY KEY,
  sandbox_id    TEXT NOT NULL REFERENCES sandboxes (id),
  open_key      TEXT UNIQUE,
  generation    BIGINT NOT NULL,
  currency      TEXT NOT NULL,
  rates         TEXT NOT NULL,
  opened_at     BIGINT NOT NULL,
  closed_at     BIGINT NOT NULL,
  start_source  TEXT NOT NULL,
  end_source    TEXT NOT NULL,
  end_estimated BIGINT NOT NULL
);
CREATE INDEX meters_sandbox ON meters (sandbox_id);

CREATE TABLE meter_segments (
  meter_id   TEXT NOT NULL REFERENCES meters (id),
  seq        BIGINT NOT NULL,
  mode       TEXT NOT NULL,
  sizes      TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  ended_at   BIGINT NOT NULL,
  PRIMARY KEY (meter_id, seq)
);

CREATE TABLE charges (
  meter_id   TEXT NOT NULL REFERENCES meters (id),
  segment    BIGINT NOT NULL,
  component  TEXT NOT NULL,
  quantity   BIGINT NOT NULL,
  unit       TEXT NOT NULL,
  unit_price BIGINT NOT NULL,
  amount     BIGINT NOT NULL,
  currency   TEXT NOT NULL,
  memo       TEXT NOT NULL,
  confidence TEXT NOT NULL,
  PRIMARY KEY (meter_id, segment, component)
);

CREATE TABLE outbox (
  sink             TEXT NOT NULL,
  stream           TEXT NOT NULL,
  seq              BIGINT NOT NULL,
  state            TEXT NOT NULL,
  attempts         BIGINT NOT NULL,
  first_attempt_at BIGINT NOT NULL,
  PRIMARY KEY (sink, stream, seq)
);
