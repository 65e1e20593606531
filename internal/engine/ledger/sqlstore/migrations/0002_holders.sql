-- Who lives, where processes cannot see each other's lock files: a lease that
-- its holder renews, on the database's clock.
CREATE TABLE holders (
  id         TEXT NOT NULL PRIMARY KEY,
  expires_at BIGINT NOT NULL
);
