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

# The commands of the profile and its kits run inside: some before the sandbox is
# ready, some before it ends.
resource "sandboxer_sandbox" "tooled" {
  profile = "profile.tooled"
  name    = "tooled"
  inputs  = { repo = "${path.module}/app" }
}
