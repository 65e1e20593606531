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
  -- Who pays for the life that is not settled: a kind of account, decided where
  -- something is to be set aside, be it nothing. '' = nobody decided: then what is
  -- set aside tells.
  payer           TEXT NOT NULL,
  -- The deadline that was sent with a create, where that was a short first one; 0 = the sandbox's own.
  claimed_until   BIGINT NOT NULL,
  -- A digest of who the credential that made it is to the vendor. '' = no vendor has it, or nobody knows.
  identity        TEXT NOT NULL,
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
  metered     BIGINT NOT NULL, -- 1 = somebody sends a bill for it
  UNIQUE (subject, fence)
);
CREATE INDEX intents_started ON intents (started_at);

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
  updated_at BIGINT NOT NULL,
  -- Where it can be restored, and how long it is kept: arch is that of its place,
  -- lapses_at when the place deletes it by itself, retention how long its owner
  -- keeps it, 0 = for ever. payer is who paid for its sandbox. identity is as in
  -- sandboxes.
  arch       TEXT NOT NULL,
  payer      TEXT NOT NULL,
  retention  BIGINT NOT NULL,
  lapses_at  BIGINT NOT NULL,
  identity   TEXT NOT NULL
);
CREATE INDEX snapshots_sandbox ON snapshots (sandbox_id);

CREATE TABLE meters (
  id                TEXT NOT NULL PRIMARY KEY,
  sandbox_id        TEXT NOT NULL REFERENCES sandboxes (id),
  open_key          TEXT UNIQUE,
  generation        BIGINT NOT NULL,
  currency          TEXT NOT NULL,
  rates             TEXT NOT NULL,
  opened_at         BIGINT NOT NULL,
  closed_at         BIGINT NOT NULL,
  start_source      TEXT NOT NULL,
  end_source        TEXT NOT NULL,
  end_estimated     BIGINT NOT NULL,
  -- Whom and where it runs for, as it was when it was opened: a sandbox made again
  -- may run elsewhere, and for another run.
  account           TEXT NOT NULL,
  name              TEXT NOT NULL,
  profile           TEXT NOT NULL,
  profile_version   TEXT NOT NULL,
  extension         TEXT NOT NULL,
  host              TEXT NOT NULL,
  actor             TEXT NOT NULL,
  harness           TEXT NOT NULL,
  run_id            TEXT NOT NULL,
  snapshot_id       TEXT NOT NULL, -- it counts the keeping of this snapshot; '' = the sandbox
  -- What it took and cost once closed, so that a report reads one narrow index. It
  -- follows from segments and charges; verification adds it up again.
  running_ms        BIGINT NOT NULL,
  paused_ms         BIGINT NOT NULL,
  wallet            BIGINT NOT NULL,
  own_key           BIGINT NOT NULL,
  own_place         BIGINT NOT NULL,
  mixed             BIGINT NOT NULL, -- 1 = there are charges in other currencies, which are not in the sums
  -- What it was charged for at prices that nobody told: whether there is such a
  -- charge, and how many, by who was to pay.
  unpriced          BIGINT NOT NULL,
  wallet_unknown    BIGINT NOT NULL,
  own_key_unknown   BIGINT NOT NULL,
  own_place_unknown BIGINT NOT NULL
);
CREATE INDEX meters_sandbox ON meters (sandbox_id);
CREATE INDEX meters_closed ON meters (closed_at, id);
CREATE INDEX meters_mixed ON meters (closed_at) WHERE mixed = 1;
CREATE INDEX meters_snapshot ON meters (snapshot_id);
CREATE INDEX meters_usage ON meters (closed_at, account, currency, profile, extension, host, actor, harness, run_id, sandbox_id, snapshot_id,
  name, end_estimated, running_ms, paused_ms, wallet, own_key, own_place, unpriced, wallet_unknown, own_key_unknown, own_place_unknown, id);

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
CREATE INDEX charges_usage ON charges (meter_id, component, segment, unit, currency, memo, amount, quantity, confidence);

CREATE TABLE outbox (
  sink             TEXT NOT NULL,
  stream           TEXT NOT NULL,
  seq              BIGINT NOT NULL,
  state            TEXT NOT NULL,
  attempts         BIGINT NOT NULL,
  first_attempt_at BIGINT NOT NULL,
  reason           TEXT NOT NULL,
  PRIMARY KEY (sink, stream, seq)
);

-- Who lives, where processes cannot see each other's lock files: a lease that
-- its holder renews, on the database's clock.
CREATE TABLE holders (
  id         TEXT NOT NULL PRIMARY KEY,
  expires_at BIGINT NOT NULL
);

-- Whose money: amounts are nano-units of a currency, always positive in
-- transfers. An account's columns are the fold of its transfers.
CREATE TABLE accounts (
  id              TEXT NOT NULL PRIMARY KEY,
  org             TEXT NOT NULL,
  kind            TEXT NOT NULL,
  currency        TEXT NOT NULL,
  debits_pending  BIGINT NOT NULL,
  credits_pending BIGINT NOT NULL,
  debits_posted   BIGINT NOT NULL,
  credits_posted  BIGINT NOT NULL
);
CREATE INDEX accounts_org ON accounts (org);

-- A pending transfer is resolved once, by a row that names it.
CREATE TABLE transfers (
  id         TEXT NOT NULL PRIMARY KEY,
  kind       TEXT NOT NULL,
  pending_id TEXT UNIQUE REFERENCES transfers (id),
  debit      TEXT NOT NULL REFERENCES accounts (id),
  credit     TEXT NOT NULL REFERENCES accounts (id),
  amount     BIGINT NOT NULL,
  subject    TEXT NOT NULL,
  budgets    TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX transfers_subject ON transfers (subject);

CREATE TABLE budgets (
  id         TEXT NOT NULL PRIMARY KEY,
  org        TEXT NOT NULL,
  account    TEXT NOT NULL,
  name       TEXT NOT NULL,
  currency   TEXT NOT NULL,
  ceiling    BIGINT NOT NULL,
  hard       BIGINT NOT NULL,
  period     TEXT NOT NULL,
  since      BIGINT NOT NULL,
  reserved   BIGINT NOT NULL,
  spent      BIGINT NOT NULL,
  over       BIGINT NOT NULL
);
CREATE INDEX budgets_org ON budgets (org);

-- How far each receiver of events has got. What is delivered is one number a
-- stream; outbox keeps only what is not sent again by itself, and why.
CREATE TABLE sinks (
  sink             TEXT NOT NULL,
  stream           TEXT NOT NULL,
  delivered        BIGINT NOT NULL,
  attempted        BIGINT NOT NULL,
  attempts         BIGINT NOT NULL,
  first_attempt_at BIGINT NOT NULL,
  PRIMARY KEY (sink, stream)
);

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

-- Leases on sandboxes that several resources hold: request is what the holder asked
-- for, expires_at when its lease lapses. They end with their sandbox.
CREATE TABLE leases (
  sandbox_id TEXT NOT NULL,
  id         TEXT NOT NULL,
  request    TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (sandbox_id, id)
);
