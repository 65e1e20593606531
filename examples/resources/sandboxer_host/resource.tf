# This machine as a place for sandboxes, with a name, a cost and a limit.
resource "sandboxer_host" "here" {
  name     = "here"
  local    = true
  region   = "eu"
  labels   = { pool = "e2e" }
  priority = 10
  capacity = { max_sandboxes = 20 }
  cost     = { per_hour = "0.40 USD", cpu = 16, memory_mb = 65536 }
}
