# A small stack in a sandbox on this machine, and its end-to-end tests.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

provider "sandboxer" {
  catalog = ["${path.module}/catalog"]
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

resource "sandboxer_sandbox" "stack" {
  profile     = "profile.e2e"
  name_prefix = "e2e-"
  inputs      = { repo = "${path.module}/stack" }
  ttl         = "15m" # it ends even if nobody destroys it
  max_cost    = "1.00 USD"
  consumer    = { actor = "atm", harness = "terraform test" }
}

# Starts the stack once per sandbox; it goes on running inside.
resource "terraform_data" "up" {
  triggers_replace = sandboxer_sandbox.stack.id

  provisioner "local-exec" {
    command = "${var.sandboxer} sandbox exec ${sandboxer_sandbox.stack.id} -- sh up.sh"
  }
}

# Runs the tests inside, again whenever the number of jobs changes. A failure
# of the script fails the apply, and with it the run of the test.
resource "terraform_data" "e2e" {
  triggers_replace = [terraform_data.up.id, var.jobs]

  provisioner "local-exec" {
    command = "${var.sandboxer} sandbox exec ${sandboxer_sandbox.stack.id} -- sh e2e.sh ${var.jobs}"
  }
}

output "sandbox_id" {
  value = sandboxer_sandbox.stack.id
}
