terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

provider "sandboxer" {
  catalog = ["${path.module}/catalog"]
}

# Commands of the profile and its kits run inside before the sandbox is ready,
# and before it ends.
resource "sandboxer_sandbox" "tooled" {
  profile = "profile.tooled"
  name    = "tooled"
  inputs  = { repo = "${path.module}/app" }
}
