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
