terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

resource "sandboxer_sandbox" "first" {
  profile = "profile.quickstart"
  name    = "first"
  ttl     = "30m"
}

output "id" {
  value = sandboxer_sandbox.first.id
}

output "runs_at" {
  value = sandboxer_sandbox.first.extension
}

output "ends_at" {
  value = sandboxer_sandbox.first.expires_at
}
