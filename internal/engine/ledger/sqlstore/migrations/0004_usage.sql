-- Whom and where a meter runs for, as it was when the meter was opened: a
-- sandbox made again may run elsewhere, and for another run.
ALTER TABLE meters ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN profile TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN profile_version TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN extension TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN actor TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN harness TEXT NOT NULL DEFAULT '';
ALTER TABLE meters ADD COLUMN run_id TEXT NOT NULL DEFAULT '';

UPDATE meters SET
  account = (SELECT s.account FROM sandboxes s WHERE s.id = meters.sandbox_id),
  name = (SELECT s.name FROM sandboxes s WHERE s.id = meters.sandbox_id),
  profile = (SELECT s.profile FROM sandboxes s WHERE s.id = meters.sandbox_id),
  profile_version = (SELECT s.profile_version FROM sandboxes s WHERE s.id = meters.sandbox_id),
  extension = (SELECT s.extension FROM sandboxes s WHERE s.id = meters.sandbox_id),
  host = (SELECT s.host FROM sandboxes s WHERE s.id = meters.sandbox_id);

CREATE INDEX meters_closed ON meters (closed_at, id);
