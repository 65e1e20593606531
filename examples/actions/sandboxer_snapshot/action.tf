# Terraform 1.14 or newer: terraform apply -invoke=action.sandboxer_snapshot.now
action "sandboxer_snapshot" "now" {
  config {
    sandbox_id = sandboxer_sandbox.app.id
    name       = "before-upgrade"
    retention  = "7d"
  }
}
