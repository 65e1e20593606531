# Ten sandboxes over four extensions. Nothing has to be applied: the plan says of
# each where it would run, what it costs at most, and why not elsewhere.
#
#   terraform plan
#   terraform plan -var most=0.20   # the metered ones are too dear then

terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

provider "sandboxer" {
  catalog = ["${path.module}/catalog"]

  credentials = { # the stub vendors only pretend: any value will do
    "ext.saas-stub"          = { api_key = "any" }
    "ext.saas-stub-eventual" = { api_key = "any" }
  }
}

variable "most" {
  type        = number
  default     = 1.00
  description = "What a metered sandbox may cost at most, in USD."
}

# A machine of yours; ext.compose-ssh runs stacks there. A plan does not dial it.
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

# Wherever it is cheapest: ext.saas-stub or ext.saas-stub-eventual.
resource "sandboxer_sandbox" "cheap" {
  count   = 2
  profile = "profile.cheap"
  name    = "cheap-${count.index}"
  ttl     = "2h"
}

# On the machine of yours: ext.compose-ssh.
resource "sandboxer_sandbox" "built" {
  count   = 2
  profile = "profile.anywhere"
  name    = "built-${count.index}"
  hosts   = [sandboxer_host.builder.ref]
  ttl     = "2h"
}
