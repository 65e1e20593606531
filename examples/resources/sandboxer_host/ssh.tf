# Your own machine with sshd, Docker and Compose. Pin its key, from:
#   ssh-keyscan -t ed25519 build.example.net | cut -d' ' -f2-
resource "sandboxer_host" "build" {
  name = "build"
  ssh = {
    address  = "build.example.net"
    port     = 22
    user     = "sandbox"
    host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    identity = { private_key_file = "~/.ssh/sandboxer" }
  }
  region   = "eu"
  capacity = { max_sandboxes = 20 }
  cost     = { per_hour = "0.40 USD", cpu = 16, memory_mb = 65536 }
}
