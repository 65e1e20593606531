terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

# Everything is optional: without a provider block, sandboxer uses the built-in
# catalog and a ledger in your state folder.
provider "sandboxer" {
  catalog = ["${path.module}/catalog"]
  ledger  = "sqlite://${path.cwd}/ledger.db"
  account = "acme/web"
}
