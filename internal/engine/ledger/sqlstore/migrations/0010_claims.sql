-- The deadline that was sent with a create, where that was a short first one; 0 = the sandbox's own.
ALTER TABLE sandboxes ADD COLUMN claimed_until BIGINT NOT NULL DEFAULT 0;
