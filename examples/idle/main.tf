# Ends when nobody has used it for 15 minutes, long before its ttl: no command, no file copy, no forwarded connection,
# and programs that compute next to nothing. The place watches; nothing of yours has to run. The next plan says that
# it ended and makes another one, or with on_expiry = "keep" leaves it ended.

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
