# Terraform 1.14 or newer: terraform apply -invoke=action.sandboxer_extend.longer
action "sandboxer_extend" "longer" {
  config {
    sandbox_id = sandboxer_sandbox.app.id
    ttl        = "6h"
  }
}
