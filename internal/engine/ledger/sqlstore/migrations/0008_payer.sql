-- Who pays for the life that is not settled: a kind of account, decided where
-- something is to be set aside, be it nothing. '' = nobody decided, or an older
-- program began it: then what is set aside tells.
ALTER TABLE sandboxes ADD COLUMN payer TEXT NOT NULL DEFAULT '';
