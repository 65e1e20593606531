# Ten sandboxes over four extensions. The plan alone shows where each would run,
# its maximum cost, and why other places are refused.
#
#   terraform plan
#   terraform plan -var most=0.20   # now the metered ones are too expensive

terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

provider "sandboxer" {
  catalog = ["${path.module}/catalog"]

  credentials = { # the stub vendors are simulated: any value works
    "ext.saas-stub"          = { api_key = "any" }
    "ext.saas-stub-eventual" = { api_key = "any" }
  }
}

variable "most" {
  type        = number
  default     = 1.00
  description = "Maximum cost of a metered sandbox, in USD."
}

# Your own machine; ext.compose-ssh runs stacks there. A plan does not connect to it.
resource "sandboxer_host" "builder" {
  name = "builder"
  ssh = {
    address  = "192.0.2.1"
    user     = "sandbox"
    host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGfVNc1tXBQ5cd7ObXhvXTXNQoPPbJWzcYIqmVVlMWC8"
  }
  cost = { per_hour = "0.80 USD", cpu = 16, memory_mb = 65536 }
}

# On this machine: ext.local.
resource "sandboxer_sandbox" "here" {
  count   = 3
  profile = "profile.quickstart"
  name    = "here-${count.index}"
}

# At a vendor, pinned by the profile: ext.saas-stub.
resource "sandboxer_sandbox" "metered" {
  count    = 3
  profile  = "profile.metered"
  name     = "metered-${count.index}"
  ttl      = "2h"
  max_cost = format("%.2f USD", var.most)
}

# At the cheapest place: ext.saas-stub or ext.saas-stub-eventual.
resource "sandboxer_sandbox" "cheap" {
  count   = 2
  profile = "profile.cheap"
  name    = "cheap-${count.index}"
  ttl     = "2h"
}

# On your own machine: ext.compose-ssh.
resource "sandboxer_sandbox" "built" {
  count   = 2
  profile = "profile.anywhere"
  name    = "built-${count.index}"
  hosts   = [sandboxer_host.builder.ref]
  ttl     = "2h"
}
