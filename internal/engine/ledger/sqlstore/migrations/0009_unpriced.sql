-- What a closed meter was charged for at prices that nobody told: whether there
-- is such a charge, and how many, by who was to pay.
ALTER TABLE meters ADD COLUMN unpriced BIGINT NOT NULL DEFAULT 0;
ALTER TABLE meters ADD COLUMN wallet_unknown BIGINT NOT NULL DEFAULT 0;
ALTER TABLE meters ADD COLUMN own_key_unknown BIGINT NOT NULL DEFAULT 0;
ALTER TABLE meters ADD COLUMN own_place_unknown BIGINT NOT NULL DEFAULT 0;

DROP INDEX meters_usage;
CREATE INDEX meters_usage ON meters (closed_at, account, currency, profile, extension, host, actor, harness, run_id, sandbox_id, name,
  end_estimated, running_ms, paused_ms, wallet, own_key, own_place, unpriced, wallet_unknown, own_key_unknown, own_place_unknown, id);
DROP INDEX charges_usage;
CREATE INDEX charges_usage ON charges (meter_id, component, segment, unit, currency, memo, amount, quantity, confidence);
