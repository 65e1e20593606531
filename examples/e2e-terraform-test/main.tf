# A small stack in a sandbox on this machine, with end-to-end tests.

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

variable "jobs" {
  type        = number
  default     = 3
  description = "Number of jobs that the test gives to the stack."
}

resource "sandboxer_sandbox" "stack" {
  profile     = "profile.e2e"
  name_prefix = "e2e-"
  inputs      = { repo = "${path.module}/stack" }
  ttl         = "15m" # it ends even if nothing destroys it
  max_cost    = "1.00 USD"
  consumer    = { actor = "atm", harness = "terraform test" }
}

# Starts the stack once per sandbox; it keeps running inside.
resource "sandboxer_exec" "up" {
  sandbox_id = sandboxer_sandbox.stack.id
  command    = ["sh", "up.sh"]
}

# Runs the tests inside, and again when the number of jobs changes. If the script
# fails, the apply and the test run fail too and show the end of its output.
resource "sandboxer_exec" "e2e" {
  sandbox_id = sandboxer_sandbox.stack.id
  command    = ["sh", "e2e.sh", tostring(var.jobs)]
  timeout    = "2m"
  depends_on = [sandboxer_exec.up]
}

output "sandbox_id" {
  value = sandboxer_sandbox.stack.id
}
