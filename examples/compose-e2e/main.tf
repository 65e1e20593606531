# A Compose stack on a host of yours, and its end-to-end tests. The host needs
# sshd, Docker and Compose; nothing is installed there and nothing is left.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

variable "host" {
  type = object({
    address          = string
    port             = optional(number)
    user             = string
    host_key         = string # a line of `ssh-keyscan`, without the address
    private_key_file = string
  })
  description = "The machine to run the stack on."
}

variable "image" {
  type        = string
  default     = "busybox:1.36"
  description = "The image of all three services; pulled by the host unless it is there."
}

variable "sandboxer" {
  type        = string
  default     = "sandboxer"
  description = "The sandboxer command line: the provider's own binary, on PATH or as a path."
}

variable "jobs" {
  type        = number
  default     = 3
  description = "How many jobs the test hands to the stack."
}

resource "sandboxer_host" "box" {
  name = "box"
  ssh = {
    address  = var.host.address
    port     = var.host.port
    user     = var.host.user
    host_key = var.host.host_key
    identity = { private_key_file = var.host.private_key_file }
  }
  capacity = { max_sandboxes = 20 }
  cost     = { per_hour = "0.40 USD", cpu = 16, memory_mb = 65536 }
}

resource "sandboxer_sandbox" "stack" {
  profile     = "profile.compose-e2e"
  name_prefix = "e2e-"
  hosts       = [sandboxer_host.box.ref]
  inputs      = { repo = "${path.module}/stack" }
  env         = { IMAGE = var.image } # what the Compose file may interpolate
  ttl         = "15m"                 # it ends even if nobody destroys it
  max_cost    = "1.00 USD"
  consumer    = { actor = "atm", harness = "terraform test" }
}

# Runs the tests inside, again whenever the number of jobs changes. A failure
# of the script fails the apply, and with it the run of the test.
resource "terraform_data" "e2e" {
  triggers_replace = [sandboxer_sandbox.stack.id, var.jobs]

  provisioner "local-exec" {
    command = "${var.sandboxer} sandbox exec --service web ${sandboxer_sandbox.stack.id} -- sh /app/e2e.sh ${var.jobs}"
  }
}

output "sandbox_id" {
  value = sandboxer_sandbox.stack.id
}

output "compose_project" {
  value = sandboxer_sandbox.stack.reachability.compose_project
}
