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
}
