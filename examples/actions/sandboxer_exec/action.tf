# Terraform 1.14 or newer.
resource "sandboxer_sandbox" "app" {
  profile = "profile.quickstart"
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.sandboxer_exec.seed]
    }
  }
}

# Also by hand: terraform apply -invoke=action.sandboxer_exec.seed
action "sandboxer_exec" "seed" {
  config {
    sandbox_id = sandboxer_sandbox.app.id
    command    = ["sh", "seed.sh"]
  }
}
