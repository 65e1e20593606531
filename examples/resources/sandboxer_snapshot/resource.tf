resource "sandboxer_sandbox" "seed" {
  profile = "profile.quickstart"
  name    = "seed"
  ttl     = "1h"
}

resource "sandboxer_snapshot" "seeded" {
  sandbox_id = sandboxer_sandbox.seed.id
  name       = "seeded"
  retention  = "30d"           # deleted then, unless a sandbox is being started from it
  triggers   = { seed = "v1" } # change it to take a new one
}

# Starts with the files of the snapshot.
resource "sandboxer_sandbox" "copy" {
  count         = 2
  profile       = "profile.quickstart"
  name          = "copy-${count.index}"
  ttl           = "1h"
  from_snapshot = sandboxer_snapshot.seeded.id
}

# A profile of your catalog may name it instead: `from_snapshot: seeded`.
