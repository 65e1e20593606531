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
