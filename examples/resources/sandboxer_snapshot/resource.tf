resource "sandboxer_sandbox" "seed" {
  profile = "profile.quickstart"
  name    = "seed"
  ttl     = "1h"
}

resource "sandboxer_snapshot" "seeded" {
  sandbox_id = sandboxer_sandbox.seed.id
  name       = "seeded"
  retention  = "30d"           # then deleted, unless a sandbox is being started from it
  triggers   = { seed = "v1" } # change it to take a new snapshot
}

# Starts with the files of the snapshot.
resource "sandboxer_sandbox" "copy" {
  count         = 2
  profile       = "profile.quickstart"
  name          = "copy-${count.index}"
  ttl           = "1h"
  from_snapshot = sandboxer_snapshot.seeded.id
}

# Alternatively, a profile of your catalog can name it: `from_snapshot: seeded`.
