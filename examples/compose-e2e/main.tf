# A Compose stack on your own host, with end-to-end tests. The host needs sshd,
# Docker and Compose; sandboxer installs nothing there and leaves nothing behind.

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
  description = "Host that runs the stack."
}

variable "image" {
  type        = string
  default     = "busybox:1.36"
  description = "Image of all three services; the host pulls it if necessary."
}

variable "jobs" {
  type        = number
  default     = 3
  description = "Number of jobs that the test gives to the stack."
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
  ttl         = "15m"                 # it ends even if nothing destroys it
  max_cost    = "1.00 USD"
  consumer    = { actor = "atm", harness = "terraform test" }
}

# Runs the tests inside, and again when the number of jobs changes. If the script
# fails, the apply and the test run fail too and show the end of its output.
resource "sandboxer_exec" "e2e" {
  sandbox_id = sandboxer_sandbox.stack.id
  service    = "web"
  command    = ["sh", "/app/e2e.sh", tostring(var.jobs)]
  timeout    = "2m"
  capture    = true
}

output "verdict" {
  value = trimspace(nonsensitive(sandboxer_exec.e2e.stdout))
}

output "sandbox_id" {
  value = sandboxer_sandbox.stack.id
}

output "compose_project" {
  value = sandboxer_sandbox.stack.reachability.compose_project
}
