-- What a closed meter took and cost, so that a report reads one narrow index.
-- It follows from segments and charges; verification adds it up again.
ALTER TABLE meters ADD COLUMN running_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE meters ADD COLUMN paused_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE meters ADD COLUMN wallet BIGINT NOT NULL DEFAULT 0;
ALTER TABLE meters ADD COLUMN own_key BIGINT NOT NULL DEFAULT 0;
ALTER TABLE meters ADD COLUMN own_place BIGINT NOT NULL DEFAULT 0;
-- 1 = there are charges in other currencies, which are not in the sums.
ALTER TABLE meters ADD COLUMN mixed BIGINT NOT NULL DEFAULT 0;

UPDATE meters SET
  running_ms = (SELECT COALESCE(SUM(s.ended_at / 1000 - s.started_at / 1000), 0) FROM meter_segments s WHERE s.meter_id = meters.id AND s.mode <> 'paused'),
  paused_ms = (SELECT COALESCE(SUM(s.ended_at / 1000 - s.started_at / 1000), 0) FROM meter_segments s WHERE s.meter_id = meters.id AND s.mode = 'paused'),
  wallet = (SELECT COALESCE(SUM(c.amount), 0) FROM charges c WHERE c.meter_id = meters.id AND c.currency = meters.currency AND c.memo = ''),
  own_key = (SELECT COALESCE(SUM(c.amount), 0) FROM charges c WHERE c.meter_id = meters.id AND c.currency = meters.currency AND c.memo LIKE 'byok_memo:%'),
  own_place = (SELECT COALESCE(SUM(c.amount), 0) FROM charges c WHERE c.meter_id = meters.id AND c.currency = meters.currency AND c.memo <> '' AND c.memo NOT LIKE 'byok_memo:%'),
  mixed = (SELECT COUNT(*) FROM (SELECT 1 FROM charges c WHERE c.meter_id = meters.id AND c.currency <> meters.currency LIMIT 1) x)
WHERE closed_at > 0;

CREATE INDEX meters_usage ON meters (closed_at, account, currency, profile, extension, host, actor, harness, run_id, sandbox_id, name,
  end_estimated, running_ms, paused_ms, wallet, own_key, own_place, id);
CREATE INDEX meters_mixed ON meters (closed_at) WHERE mixed = 1;
CREATE INDEX charges_usage ON charges (meter_id, component, segment, unit, currency, memo, amount, quantity);
