terraform {
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

resource "sandboxer_host" "build" {
  name = "build"
  ssh = {
    address  = "build.example.net"
    port     = 22
    user     = "sandbox"
    host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    identity = { private_key_file = "~/.ssh/sandboxer" }
  }
  capacity = { max_sandboxes = 20 } # optional: at most so many at once
}

output "found" {
  value = sandboxer_host.build.facts
}
