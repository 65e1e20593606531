terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

# Everything is optional: without a provider block the built-in catalog is used
# and the ledger lives in your state folder.
provider "sandboxer" {
  catalog = ["${path.module}/catalog"]
  ledger  = "sqlite://${path.cwd}/ledger.db"
  account = "acme/web"

  # Only where an extension needs some; otherwise the vendor's usual
  # environment variables are read.
  credentials = {
    "ext.saas-stub" = { api_key = var.stub_api_key }
  }
}

variable "stub_api_key" {
  type      = string
  default   = "any value will do for the stub vendor"
  sensitive = true
}
