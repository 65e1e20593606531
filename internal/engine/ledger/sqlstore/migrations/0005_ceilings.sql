-- How many were begun lately, and of those how many that somebody sends a
-- bill for.
ALTER TABLE intents ADD COLUMN metered BIGINT NOT NULL DEFAULT 0;
CREATE INDEX intents_started ON intents (started_at);
