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

# The profile sets where each input goes. A value stays one text, whatever it contains.
resource "sandboxer_sandbox" "greeter" {
  profile = "profile.greeter"
  name    = "greeter"
  inputs = {
    greeting = "it's $HOME; \"{{input.times}}\""
    times    = 2
  }
}
