resource "sandboxer_sandbox" "app" {
  profile  = "profile.quickstart"
  name     = "app"
  inputs   = { repo = "${path.module}/app" } # a folder, or a git URL
  ttl      = "2h"
  max_cost = "1.00 USD" # refuse before anything exists

  env                = { LOG_LEVEL = "debug" }
  secrets_wo         = { API_TOKEN = var.api_token } # in no plan, state or ledger
  secrets_wo_version = 1

  consumer  = { actor = "atm", harness = "ci", run_id = "42" }
  triggers  = { app = sha256(join("", [for f in fileset("${path.module}/app", "**") : filesha256("${path.module}/app/${f}")])) }
  on_expiry = "replace"
  timeouts  = { create = "10m" }
}

variable "api_token" {
  type      = string
  default   = "not a real one"
  ephemeral = true
}

output "ends_at" {
  value = sandboxer_sandbox.app.expires_at
}

output "worst_case" {
  value = "${sandboxer_sandbox.app.estimate.maximum} ${sandboxer_sandbox.app.estimate.currency}"
}
