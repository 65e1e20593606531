terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

# A container on this machine's own Docker. It has no network, no capabilities and an ordinary user.
resource "sandboxer_sandbox" "box" {
  profile = "profile.container"
  name    = "box"
  inputs  = { image = "docker.io/library/debian:12-slim" }
  ttl     = "30m"
}

output "id" {
  value = sandboxer_sandbox.box.id
}

output "runs_at" {
  value = sandboxer_sandbox.box.extension
}

output "ends_at" {
  value = sandboxer_sandbox.box.expires_at
}
