# A generator: sources go into a container without a network, a build runs there, and its artifacts come back into
# dist/ at the end.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

provider "sandboxer" {
  catalog = ["${path.module}/catalog"]
}

variable "image" {
  type        = string
  default     = "docker.io/library/debian:12-slim"
  description = "Image of the build; it needs a shell and tar."
}

locals {
  source  = "${path.module}/source"
  inputs  = setsubtract(fileset(local.source, "**"), fileset(local.source, "dist/**"))
  version = sha256(join("", [for f in local.inputs : filesha256("${local.source}/${f}")]))
}

# New sources replace the sandbox: each build is in a new one.
resource "sandboxer_sandbox" "build" {
  profile     = "profile.generator"
  name_prefix = "build-"
  inputs      = { repo = local.source, image = var.image }
  triggers    = { sources = local.version }
  max_cost    = "1.00 USD"
}

resource "sandboxer_exec" "build" {
  sandbox_id = sandboxer_sandbox.build.id
  command    = ["sh", "build.sh"]
  env        = { VERSION = substr(local.version, 0, 12) }
  timeout    = "30m"
}

resource "sandboxer_exec" "checksums" {
  sandbox_id = sandboxer_sandbox.build.id
  shell      = "cd dist && sha256sum *"
  capture    = true
  triggers   = { build = sandboxer_exec.build.id }
}

output "checksums" {
  value = nonsensitive(sandboxer_exec.checksums.stdout)
}
