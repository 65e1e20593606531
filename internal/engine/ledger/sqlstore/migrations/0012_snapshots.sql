-- Where a snapshot can be restored, and how long it is kept: arch is that of its
-- place, lapses_at when the place deletes it by itself, retention how long its
-- owner keeps it, 0 = for ever. payer is who paid for its sandbox.
ALTER TABLE snapshots ADD COLUMN arch TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN payer TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN retention BIGINT NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN lapses_at BIGINT NOT NULL DEFAULT 0;

-- A meter that counts the keeping of a snapshot of its sandbox; '' = the sandbox.
ALTER TABLE meters ADD COLUMN snapshot_id TEXT NOT NULL DEFAULT '';
CREATE INDEX meters_snapshot ON meters (snapshot_id);
DROP INDEX meters_usage;
CREATE INDEX meters_usage ON meters (closed_at, account, currency, profile, extension, host, actor, harness, run_id, sandbox_id, snapshot_id,
  name, end_estimated, running_ms, paused_ms, wallet, own_key, own_place, unpriced, wallet_unknown, own_key_unknown, own_place_unknown, id);
