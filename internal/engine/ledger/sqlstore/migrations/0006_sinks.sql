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
ALTER TABLE outbox ADD COLUMN reason TEXT NOT NULL DEFAULT '';
DELETE FROM outbox;
