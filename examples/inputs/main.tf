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

# The profile says where each input goes; a value is one text there, whatever is in it.
resource "sandboxer_sandbox" "greeter" {
  profile = "profile.greeter"
  name    = "greeter"
  inputs = {
    greeting = "it's $HOME; \"{{input.times}}\""
    times    = 2
  }
}
