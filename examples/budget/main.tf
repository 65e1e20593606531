# Leaves room for others: creates the sandbox only if every budget can pay for it
# and keep a spare amount. Set a budget first; without one, nothing is limited:
#
#   sandboxer ledger budget set month "5 USD" --period month

terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

provider "sandboxer" {
  catalog     = ["${path.module}/catalog"]
  credentials = { "ext.saas-stub" = { api_key = "any" } } # the stub vendor only pretends
}

variable "spare" {
  type        = number
  default     = 1
  description = "USD that each budget must keep after paying for this sandbox."
}

data "sandboxer_account" "ours" {}

data "sandboxer_quote" "job" {
  profile = "profile.job"
  ttl     = "2h"
}

locals {
  budgets = [for b in data.sandboxer_account.ours.budgets : b if b.currency == data.sandboxer_quote.job.currency]
}

# A hard budget refuses a sandbox that does not fit, even in the plan. This
# precondition demands more: room for the maximum, and a spare amount. Every plan
# checks it, even while the sandbox lives.
resource "sandboxer_sandbox" "job" {
  profile = "profile.job"
  name    = "job"
  ttl     = "2h"

  lifecycle {
    precondition {
      condition     = alltrue([for b in local.budgets : tonumber(b.left) >= tonumber(data.sandboxer_quote.job.maximum) + var.spare])
      error_message = "A budget would keep less than ${var.spare} USD after the ${data.sandboxer_quote.job.maximum} USD that this sandbox may cost."
    }
  }
}

# This only warns, in every plan and apply.
check "budgets" {
  assert {
    condition     = alltrue([for b in local.budgets : tonumber(b.left) >= tonumber(b.limit) / 10])
    error_message = "Less than a tenth is left in: ${join(", ", [for b in local.budgets : "${b.name} of ${b.account}" if tonumber(b.left) < tonumber(b.limit) / 10])}."
  }
}
