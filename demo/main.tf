terraform {
  required_providers {
    sandboxer = { source = "sand-boxer/sandboxer" }
  }
}

# Needs no configuration: the catalog is built in, the ledger is in the state folder.
provider "sandboxer" {}

resource "sandboxer_sandbox" "demo" {
  profile  = "profile.quickstart"
  name     = "demo"
  ttl      = "10m"
  max_cost = "0.10 USD"
  consumer = { actor = "adm", harness = "make demo" }
}

output "id" {
  value = sandboxer_sandbox.demo.id
}

output "place" {
  value = sandboxer_sandbox.demo.extension
}

output "ends_at" {
  value = sandboxer_sandbox.demo.expires_at
}
