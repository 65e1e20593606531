# This sandbox ends after 15 idle minutes, long before its ttl. Idle means no command, no file copy, no forwarded
# connection, and programs that use almost no CPU. The place watches; nothing of yours has to run. The next plan says
# that it ended and creates another one, or keeps it ended with on_expiry = "keep".

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

resource "sandboxer_sandbox" "desk" {
  profile = "profile.desk"
  name    = "desk"
}

output "ends_at_the_latest" {
  value = sandboxer_sandbox.desk.expires_at
}
