# Leave something for others: a sandbox is only made while the budgets have room
# for it and for a reserve. Set a budget first, or nothing bounds it:
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
  description = "USD that each budget has to keep beside this sandbox."
}

data "sandboxer_account" "ours" {}

data "sandboxer_quote" "job" {
  profile = "profile.job"
  ttl     = "2h"
}

locals {
  budgets = [for b in data.sandboxer_account.ours.budgets : b if b.currency == data.sandboxer_quote.job.currency]
}

# A hard budget refuses by itself what it has no room for, in the plan already.
# This asks for more than that: room for the worst case, and something to spare.
# It is asked by every plan, while the sandbox lives too.
resource "sandboxer_sandbox" "job" {
  profile = "profile.job"
  name    = "job"
  ttl     = "2h"

  lifecycle {
    precondition {
      condition     = alltrue([for b in local.budgets : tonumber(b.left) >= tonumber(data.sandboxer_quote.job.maximum) + var.spare])
      error_message = "A budget would keep less than ${var.spare} USD beside the ${data.sandboxer_quote.job.maximum} USD that this sandbox may cost."
    }
  }
}

# Only told: a warning of each plan and apply.
check "budgets" {
  assert {
    condition     = alltrue([for b in local.budgets : tonumber(b.left) >= tonumber(b.limit) / 10])
    error_message = "Less than a tenth is left of: ${join(", ", [for b in local.budgets : "${b.name} of ${b.account}" if tonumber(b.left) < tonumber(b.limit) / 10])}."
  }
}
